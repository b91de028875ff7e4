#!/bin/sh
# Root's part of an image: Python, the packages that are named as arguments, and the user. For Debian and its relatives.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends "$@"
# An interpreter in /usr/local, as the images `python:*` have, is used as it is.
python3 -c 'import ensurepip' 2>/dev/null || apt-get install -y --no-install-recommends python3 python3-venv
rm -rf /var/lib/apt/lists/*
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "the base image has $(python3 --version); Python 3.11 or newer is needed" >&2
    exit 1
}
# Ubuntu's images have a user 1000 of their own.
if other=$(getent passwd 1000); then userdel --remove "${other%%:*}"; fi
useradd --create-home --uid 1000 rlanything
