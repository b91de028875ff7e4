# The whole experiment in a container, on CPU:
#
#     docker build -t rlanything .
#     docker run --rm -v "$PWD/results:/app/report" rlanything            # dvc repro
#     docker run --rm --entrypoint rlanything rlanything buffer ls
#
# BASE may be any Debian-like image; Python 3.11 is installed where it is missing.
ARG BASE=python:3.11-slim-bookworm

# The virtual environment: torch first and on its own, because it is the largest layer and changes least.
FROM ${BASE} AS builder
# An index of CPU builds keeps the image small; empty: where pip looks anyway.
ARG TORCH_INDEX=
RUN command -v python3 >/dev/null || { \
        apt-get update \
        && apt-get install -y --no-install-recommends python3 python3-venv \
        && rm -rf /var/lib/apt/lists/*; }
RUN python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install torch==2.13.0 ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
WORKDIR /src
COPY pyproject.toml README.md ./
COPY rlanything rlanything
COPY envs envs
RUN --mount=type=cache,target=/root/.cache/pip pip install .

FROM ${BASE} AS runtime
# DVC runs git; the virtual environment needs the interpreter that it was made with.
RUN apt-get update \
    && apt-get install -y --no-install-recommends git \
    && { command -v python3 >/dev/null || apt-get install -y --no-install-recommends python3; } \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 rlanything
COPY --from=builder /opt/venv /opt/venv
# One thread a process: stages run processes side by side.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    OMP_NUM_THREADS=1 \
    OMP_WAIT_POLICY=PASSIVE \
    DVC_NO_ANALYTICS=1 \
    HF_HUB_OFFLINE=1
WORKDIR /app
COPY --chown=rlanything:rlanything . .
RUN chown rlanything:rlanything /app
USER 1000
# The image carries no git history, and DVC does not need one to run the pipeline.
RUN dvc config --local core.no_scm true
ENTRYPOINT ["dvc"]
CMD ["repro"]
