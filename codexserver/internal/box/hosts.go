package box

import (
	"errors"
	"slices"
	"strings"
	"sync"
)

// HostsAvailable returns why commands on this system cannot have a network that the server serves them, or nil.
func HostsAvailable() error { return hostsLacking() }

var hostsLacking = sync.OnceValue(func() error { return errors.Join(Available(), lacksHosts()) })

// proxyAddress is where a command finds the proxy, of which [proxyPort] is a part. Without rooms nothing listens there: each
// of its sockets is connected to the server.
const (
	proxyAddress = "127.0.0.1:3128"
	proxyPort    = 3128
)

// Environ returns the environment of a command with the variables that name the proxy, in place of others.
func (h *Hosts) Environ(env []string) []string {
	direct := "" // what is not asked of the proxy: with rooms the command's own servers
	if RoomsAvailable() == nil {
		direct = "localhost,127.0.0.1,::1"
	}
	set := []string{"NODE_USE_ENV_PROXY=1", "NO_PROXY=" + direct, "no_proxy=" + direct}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		set = append(set, name+"=http://"+proxyAddress, strings.ToLower(name)+"=http://"+proxyAddress)
	}
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(set, func(own string) bool { return strings.HasPrefix(own, name+"=") })
	})
	return slices.Concat(env, set, h.Confinement.Environ())
}
