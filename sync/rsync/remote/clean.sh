# SPDX-License-Identifier: MIT
# Argument: the folder of ours. What a delivery has left in it is needed no more.
set -eu
cd "$1"
rm -rf tmp backup again
umask 077
mkdir tmp backup again
