package page

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// listenHere listens on 127.0.0.1 at a port, 0 for any free one, and returns the page's host.
func listenHere(port int) ([]net.Listener, string, error) {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, "", err
	}
	return []net.Listener{l}, l.Addr().String(), nil
}

// listenByName listens where browsers look for localhost, since they use passkeys only at a name: on
// 127.0.0.1 and, if this machine has it, on ::1 at the same port. Otherwise another program there could
// get a link's secret.
func listenByName(port int) ([]net.Listener, string, error) {
	const tries = 20 // for a free port that is free at both
	for try := 1; ; try++ {
		all, _, err := listenHere(port)
		if err != nil {
			return nil, "", err
		}
		at := all[0].Addr().(*net.TCPAddr).Port
		if hasIPv6() {
			var l net.Listener
			if l, err = net.Listen("tcp6", net.JoinHostPort("::1", strconv.Itoa(at))); err == nil {
				all = append(all, l)
			}
		}
		if err == nil {
			return all, fmt.Sprintf("localhost:%d", at), nil
		}
		if err = errors.Join(err, all[0].Close()); port != 0 || try == tries {
			return nil, "", err
		}
	}
}

// hasIPv6 reports whether this machine has the address ::1.
func hasIPv6() bool {
	l, err := net.Listen("tcp6", "[::1]:0")
	return err == nil && l.Close() == nil
}
