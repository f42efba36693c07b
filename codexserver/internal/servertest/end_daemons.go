package servertest

// Daemons is the command that the server's agent runs in the server's folder. It starts three daemons that keep the named
// pipe alive open: one in the background and two in sessions of their own, the last of them without the inherited variables.
// Then it writes to the named pipe up.
const Daemons = `
exec 9>alive
daemon='exec 99>&- 2>&- >&- <&-; touch $0; exec sleep 600'
bash -c "$daemon" a &
(setsid bash -c "$daemon" b &)
(setsid bash -c "setsid env -i /bin/bash -c '$daemon' c &" &)
until [ -e a ] && [ -e b ] && [ -e c ]; do sleep 0.01; done
echo up > up
sleep 600
`
