r"""How a name is given its value, in the notations that stand in issues.

| notation | `GIVEN` reads what stands between name and value in |
|---|---|
| assignments | `name = v`, `name: v`, `name => v`, `"name": "v"`, `\"name\":\"v\"`, `name: &str = "v"` |
| calls and lists | `define('name', 'v')`, `("name", "v")`, `map[name:[v]]` |
| apart | `{"name": "name", "value": "v"}`, `name: NAME` above `value: v`, `name="x" value="v"` |
| prompts, markup | `name [None]: v`, `<name>v</name>`, `<x name="name">v` |

Patterns that use it are verbose.
"""

QUOTE = r"""\\{0,2}["'`]"""
GIVEN = rf"""(?:
    [\\"'`\])]{{0,4}}[ \t]{{0,8}}(?:=>|->|:=|:|={{1,2}}|,(?=[ ]?["'`\\]))[ \t]{{0,8}}(?:\[(?!secret\]))?
        (?:(?:&|static[ ]|const[ ]|[sS]tr(?:ing)?){{0,3}}[ ]=[ ])?
    |(?:{QUOTE})?[ \t]{{0,4}}[,{{]?\s{{0,40}}(?:type\s{{1,8}}=\s{{1,8}}string\s{{1,16}})?
        (?:{QUOTE})?(?:value|default)(?:{QUOTE})?[ \t]{{0,8}}[:=][ \t]{{0,8}}
    |[ ]\[[\w*]{{0,12}}\]:[ ]
    |["']?>
)"""
LINE_START = r"(?m:^)[ \t>+|-]{0,20}(?:\d{1,6}[ ]{1,4})?(?:(?:export|set|setx|ENV|-e|--env|\$env:)[ ]?)?"
LINE_END = r"(?=[ \t]{0,20}\\?\r?(?m:$))"
