#!/usr/bin/env bash
# Build one image of the Dockerfile with podman or buildah, and run the smallest experiment in it. See usage below.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: containers/build_and_smoke.sh [options] BASE [-- COMMAND ...]

Builds an image on BASE, any image of Debian or its relatives with Python 3.11 or newer in it or in its packages.
Then runs COMMAND in it; without one `make repro SCALE=smoke`, and checks that the run left a report.

  -e ENGINE   podman or buildah; default: podman, or buildah where there is no podman
  -t TARGET   stage of the Dockerfile: cpu (default), test or gpu
  -n NAME     name of the image; default: localhost/rlanything:TARGET
  -i URL      index of CPU builds of torch; default: where pip looks anyway
  -p FILE     pip configuration, read during the build only and stored in no layer
  -v A:B      folder or file A of this machine, read-only at B during the build only; may be given several times
  -r OPTION   option of `podman run`, e.g. -r --ulimit=nofile=1024:1024; may be given several times

Where the kernel lets nobody make containers, e.g. inside another one: BUILDAH_ISOLATION=chroot and -e buildah.

A base without a registry, as root:
  debootstrap --variant=minbase bookworm rootfs
  tar -C rootfs -c . | podman import - localhost/debian:bookworm
Without podman: printf 'FROM scratch\nADD rootfs.tar /\n' | buildah bud -t localhost/debian:bookworm -f - .
TEXT
}

fail() {
    echo "build_and_smoke: $*" >&2
    exit 2
}

engine='' target=cpu name='' index='' pip=''
volumes=() limits=()
while getopts e:t:n:i:p:v:r:h option; do
    case $option in
        e) engine=$OPTARG ;;
        t) target=$OPTARG ;;
        n) name=$OPTARG ;;
        i) index=$OPTARG ;;
        p) pip=$OPTARG ;;
        v) volumes+=("$OPTARG") ;;
        r) limits+=("$OPTARG") ;;
        h) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
    esac
done
# getopts steps over a -- that stands where BASE should.
[ $# -ge "$OPTIND" ] && [ "${!OPTIND}" != -- ] && { [ "$OPTIND" = 1 ] || [ "${@:OPTIND-1:1}" != -- ]; } || {
    usage >&2
    fail "BASE is missing"
}
shift $((OPTIND - 1))
base=$1
shift
[ $# -eq 0 ] || [ "$1" = -- ] || fail "after BASE comes nothing, or -- and a command, not $1"
[ $# -eq 0 ] || shift

case $target in cpu | test | gpu) ;; *) fail "the Dockerfile has no image $target; it has cpu, test and gpu" ;; esac
if [ -z "$engine" ]; then
    engine=$(basename "$(command -v podman || command -v buildah || fail "neither podman nor buildah is installed")")
fi
case $engine in podman | buildah) ;; *) fail "$engine is neither podman nor buildah" ;; esac
command -v "$engine" >/dev/null || fail "$engine is not installed"
[ -z "$pip" ] || [ -r "$pip" ] || fail "$pip cannot be read"
name=${name:-localhost/rlanything:$target}
cd "$(dirname "$0")/.."

options=(--target "$target" --tag "$name" --layers)
[ "$target" = gpu ] && options+=(--build-arg "GPU_BASE=$base") || options+=(--build-arg "BASE=$base")
[ -z "$index" ] || options+=(--build-arg "TORCH_INDEX=$index")
[ -z "$pip" ] || options+=(--secret "id=pip,src=$pip")
for volume in "${volumes[@]}"; do
    [ -e "${volume%%:*}" ] || fail "${volume%%:*} does not exist"
    options+=(--volume "$volume:ro")
done

echo "== build $name with $engine on $base"
started=$SECONDS
"$engine" build "${options[@]}" .
built=$((SECONDS - started))

# The check needs nothing but the image: where the engine can, it runs without a network.
# shellcheck disable=SC2016  # the shell of the container expands it
smoke='set -eu
[ "$(id -u)" -ne 0 ] || { echo "the image runs as root" >&2; exit 1; }
echo "user $(id -u), $(rlanything --version), $(python --version), torch $(python -c "import torch; print(torch.__version__)")"
make repro SCALE=smoke
test -s .rla/smoke/report/report.md'
command=(sh -c "$smoke")
[ $# -eq 0 ] || command=("$@")

echo "== run ${*:-make repro SCALE=smoke}"
started=$SECONDS
if [ "$engine" = podman ]; then
    podman run --rm --network none "${limits[@]}" "$name" "${command[@]}"
else
    container=$(buildah from "$name")
    trap 'buildah rm "$container" >/dev/null' EXIT
    buildah run "$container" -- "${command[@]}"
fi
echo "== PASSED: built in ${built} s, ran in $((SECONDS - started)) s: $name"
