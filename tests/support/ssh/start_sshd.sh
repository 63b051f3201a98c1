#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Becomes an sshd for one test: start_sshd.sh FOLDER PORT [LOGIN-SHELL]. The sshd listens only on
# 127.0.0.1, and needs nothing of the system's except its programs. FOLDER is empty, or has only
#   extra_config  lines of sshd_config(5), which go before ours: the first value counts
# The script makes in FOLDER:
#   host_ed25519, host_ecdsa  host keys; also host_rsa, which takes long, if extra_config has "rsa"
#   authority, host_ed25519-cert.pub  if extra_config has "HostCertificate host_ed25519-cert.pub"
#   id             a key that may log in, without passphrase
#   authorized_keys, known_hosts, home/ of the user, run/ for XDG_RUNTIME_DIR, log
#   ssh_config     for ssh -F: the host "box"
#
# The user of the sshd is the one who runs this script. If that is root, the sshd gets a mount
# namespace, in which the user's line in /etc/passwd and /etc/shadow is another one. So the home,
# the login shell and the password ("sesame", or none if extra_config permits empty passwords) are
# the test's, and sshd treats them as usual. For other users, or without the namespace, SetEnv sets
# the home, ForceCommand starts the shell (through the user's real shell), and no password is right.
#
# If SERVER is "dropbear" or "tinysshd", root gets that server instead. It reads no extra_config.
set -eu

folder=$1 port=$2 shell=${3:-}
user=$(id -un)
cd "$folder"
umask 077

types='ed25519 ecdsa'
if grep -q rsa extra_config 2> /dev/null; then
	types="$types rsa"
fi
for type in $types; do
	ssh-keygen -q -N '' -C '' -t "$type" -f "host_$type"
	read -r algorithm key < "host_$type.pub"
	echo "[127.0.0.1]:$port $algorithm $key" >> known_hosts
done
if grep -q HostCertificate extra_config 2> /dev/null; then
	ssh-keygen -q -N '' -C '' -t ed25519 -f authority
	ssh-keygen -q -s authority -h -I box -n 127.0.0.1 host_ed25519.pub
fi
ssh-keygen -q -N '' -C '' -t ed25519 -f id
cp id.pub authorized_keys
mkdir -p home run
if [ "${shell##*/}" = busybox ]; then
	ln -s "$shell" sh # busybox runs the applet of that name
	shell=$folder/sh
fi

cat > ssh_config <<END
Host box
	HostName 127.0.0.1
	Port $port
	User $user
	IdentityFile $folder/id
	IdentitiesOnly yes
	IdentityAgent none
	UserKnownHostsFile $folder/known_hosts
	GlobalKnownHostsFile /dev/null
	StrictHostKeyChecking yes
	ControlPath none
END

cat > sshd_config <<END
$(sed "s|^HostCertificate |&$folder/|" extra_config 2> /dev/null || true)
Port $port
ListenAddress 127.0.0.1
$(for type in $types; do echo "HostKey $folder/host_$type"; done)
AuthorizedKeysFile $folder/authorized_keys
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
UseDNS no
PrintMotd no
PrintLastLog no
MaxStartups 100
LogLevel VERBOSE
END
# Processes in this sshd keep their sockets and FIFOs in the folder, so that these are removed with
# it.
environment=XDG_RUNTIME_DIR=$folder/run
server=${SERVER:-sshd}
# By this mark a test finds every process that it has started (tests/integration/processes.py).
[ -z "${ACP_TEST_MARK:-}" ] || environment="$environment ACP_TEST_MARK=$ACP_TEST_MARK"

if [ "$(id -u)" = 0 ]; then
	[ -d /run/sshd ] || mkdir -p -m 0755 /run/sshd # for its unauthenticated processes
	if unshare --mount true 2> /dev/null; then
		export user shell folder
		awk -F: -v OFS=: '$1 == ENVIRON["user"] {
			$6 = ENVIRON["folder"] "/home"
			if (ENVIRON["shell"]) $7 = ENVIRON["shell"]
		} { print }' /etc/passwd > passwd
		chmod 0644 passwd
		# crypt(3) of "sesame"
		hash='$6$loopback$0Sp36.ECHZI6u3gVnif0i0SDMZsIIVoHn4/60'
		hash=${hash}TO0bQYdI6nljbzj5iF0Qh8JXjAB4MYYJeoTIn4mBZMLlqiB//
		if grep -qi 'PermitEmptyPasswords yes' extra_config 2> /dev/null; then
			hash=
		fi
		awk -F: -v OFS=: -v hash="$hash" '$1 == ENVIRON["user"] { $2 = hash } { print }' \
			/etc/shadow > shadow
		echo "SetEnv $environment" >> sshd_config
		case $server in
		sshd) set -- /usr/sbin/sshd -D -e -f "$folder/sshd_config" ;;
		*) # these keep the keys of a user in the home, and set only a few variables
			mkdir -m 0700 home/.ssh
			cp authorized_keys home/.ssh
			printf '#!/bin/sh\nexport %s\nexec /bin/sh "$@"\n' "$environment" > login
			chmod 0755 login
			sed -i "s|^\($user:.*:\)[^:]*\$|\1$folder/login|" passwd
			(cat /etc/shells && echo "$folder/login") > shells
			;;
		esac
		case $server in
		dropbear)
			dropbearconvert openssh dropbear host_ed25519 host_dropbear 2> /dev/null
			set -- dropbear -F -E -p "127.0.0.1:$port" -r "$folder/host_dropbear" \
				-P "$folder/pid"
			;;
		tinysshd)
			tinysshd-makekey keys
			echo "[127.0.0.1]:$port $(tinysshd-printkey keys)" > known_hosts
			set -- systemd-socket-activate --inetd --accept -l "127.0.0.1:$port" \
				tinysshd -v "$folder/keys"
			;;
		esac
		exec unshare --mount sh -c 'mount --bind passwd /etc/passwd &&
			mount --bind shadow /etc/shadow &&
			{ ! [ -e shells ] || mount --bind shells /etc/shells; } && exec "$@"' \
			sh "$@" < /dev/null > log 2>&1
	fi
fi
[ "$server" = sshd ] || exec false

echo "SetEnv $environment HOME=$folder/home" >> sshd_config
if [ -n "$shell" ]; then
	command="cd; SHELL=$shell exec $shell -c \"\$SSH_ORIGINAL_COMMAND\""
	echo "ForceCommand $command" >> sshd_config
fi
exec /usr/sbin/sshd -D -e -f "$PWD/sshd_config" < /dev/null > log 2>&1
