"""A server that has the hours, such as https://data.gharchive.org, in place of a folder with them.

```
listing ► wire         what each hour is called, how large it is and how it ends, without its body   (a month)
extract ► download     an hour into the working folder, then to rows, then gone                      (an hour)
download ► wire        again and again from where it broke off, until it is whole
tries, slots           how long to wait between failures; how many connections there are at once
```

How an hour came decides nothing: its task is named as if it came from a folder.
"""
