# aoe-toolkit for a CPU. Without arguments it runs the demo; mount a folder at /data to keep the output:
#   docker build --tag aoe-toolkit .
#   docker run --rm aoe-toolkit
#   docker run --rm --user "$(id -u)" --volume "$PWD:/data" --env GITHUB_TOKEN aoe-toolkit \
#     gis build --repos rust-lang/rust --out rust
# With training: docker build --build-arg EXTRAS=label,train,minilm --tag aoe-toolkit .
FROM python:3.12-slim

ARG EXTRAS=label
WORKDIR /app
COPY . .
RUN pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]" \
    && useradd --create-home --uid 10001 aoe \
    && mkdir /data \
    && chown aoe /data

USER 10001
WORKDIR /data
CMD ["gis", "demo", "--out", "demo"]
