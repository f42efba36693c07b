package endtest

// Script is what the server's agent is to run, in the server's folder. It starts
// three daemons that hold the named pipe alive: one in the background, and two
// that lead or left a session, of which the last has none of the variables that
// it inherited. Then it writes to the named pipe up.
const Script = `
exec 9>alive
daemon='exec 99>&- 2>&- >&- <&-; touch $0; exec sleep 600'
bash -c "$daemon" a &
(setsid bash -c "$daemon" b &)
(setsid bash -c "setsid env -i /bin/bash -c '$daemon' c &" &)
until [ -e a ] && [ -e b ] && [ -e c ]; do sleep 0.01; done
echo up > up
sleep 600
`
