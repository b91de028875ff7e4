# The whole experiment in a container. docs/containers.md has more.
#
#     docker build -t rlanything:cpu .
#     docker run --rm --init -v rlanything:/app rlanything:cpu                           # make repro
#     docker run --rm --init -v rlanything:/app rlanything:cpu make repro SCALE=smoke    # minutes
#     docker run --rm -v rlanything:/app rlanything:cpu rlanything buffer ls
#     docker build -t rlanything:test --target test . && docker run --rm --init rlanything:test
#     docker build -t rlanything:gpu --target gpu .                                      # with vLLM
#
# The volume keeps results, and an interrupted run goes on from them. BASE and GPU_BASE may be any image of Debian or its
# relatives; Python is installed where it is missing. --secret id=pip,src=FILE gives pip a configuration for the build only.
ARG BASE=python:3.11.13-slim-bookworm
ARG GPU_BASE=nvidia/cuda:13.0.1-runtime-ubuntu24.04

# `make` and `git` are what `make repro` and DVC call.
FROM ${BASE} AS cpu-system
COPY containers/system.sh /opt/
RUN sh /opt/system.sh git make

# The virtual environment: torch first and on its own, because it is the largest layer and changes least.
FROM cpu-system AS cpu-packages
# An index of CPU builds keeps the image small; empty: where pip looks anyway.
ARG TORCH_INDEX=
# More extras of pyproject.toml, e.g. `ray lora`. Packages that constraints-cpu.txt names have its versions; docs/containers.md
# says of which extras it names all.
ARG EXTRAS=
RUN python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1
RUN --mount=type=cache,target=/root/.cache/pip --mount=type=secret,id=pip,target=/etc/pip.conf \
    pip install torch==2.13.0 ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
WORKDIR /src
COPY pyproject.toml containers/requirements.py containers/constraints-cpu.txt ./
RUN --mount=type=cache,target=/root/.cache/pip --mount=type=secret,id=pip,target=/etc/pip.conf \
    # shellcheck disable=SC2086
    python requirements.py sweep coding $EXTRAS > requirements.txt \
    && pip install --constraint constraints-cpu.txt --requirement requirements.txt "setuptools>=77"

FROM cpu-packages AS test-packages
RUN --mount=type=cache,target=/root/.cache/pip --mount=type=secret,id=pip,target=/etc/pip.conf \
    python requirements.py dev > requirements.txt \
    && pip install --constraint constraints-cpu.txt --requirement requirements.txt

# vLLM pins versions of its own, so nothing of the CPU's packages is shared.
FROM ${GPU_BASE} AS gpu-system
COPY containers/system.sh /opt/
# Triton compiles its kernels when they are first used: it needs a compiler and Python's headers.
RUN sh /opt/system.sh git make gcc libc6-dev python3 python3-venv python3-dev

FROM gpu-system AS gpu-packages
RUN python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1
RUN --mount=type=cache,target=/root/.cache/pip --mount=type=secret,id=pip,target=/etc/pip.conf \
    pip install torch==2.13.0
WORKDIR /src
COPY pyproject.toml containers/requirements.py containers/constraints-gpu.txt ./
RUN --mount=type=cache,target=/root/.cache/pip --mount=type=secret,id=pip,target=/etc/pip.conf \
    python requirements.py sweep coding vllm lora > requirements.txt \
    && pip install --constraint constraints-gpu.txt --requirement requirements.txt "setuptools>=77"

FROM gpu-system AS gpu
COPY --from=gpu-packages /opt/venv /opt/venv
# VENV names the environment to `make`. One thread a process: stages run processes side by side.
ENV VENV=/opt/venv PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE \
    DVC_NO_ANALYTICS=1 HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1
WORKDIR /app
COPY --chown=1000:1000 . .
RUN sh containers/project.sh .installed
USER 1000
CMD ["make", "repro"]

FROM cpu-system AS cpu-runtime
ENV VENV=/opt/venv PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE \
    DVC_NO_ANALYTICS=1 HF_HUB_OFFLINE=1
WORKDIR /app

# The tests need the extra `dev` and a compiler. What tests with PostgreSQL, chromium, bubblewrap or an engine of containers
# need is not here; pytest names what it skips.
FROM cpu-runtime AS test
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
COPY --from=test-packages /opt/venv /opt/venv
COPY --chown=1000:1000 . .
RUN sh containers/project.sh .installed .installed-dev
USER 1000
CMD ["make", "test"]

# The last stage is the one that is built where no target is named.
FROM cpu-runtime AS cpu
COPY --from=cpu-packages /opt/venv /opt/venv
COPY --chown=1000:1000 . .
RUN sh containers/project.sh .installed
USER 1000
CMD ["make", "repro"]
