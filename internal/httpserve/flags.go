// Package httpserve runs an HTTP server that other machines reach only by a proxy with TLS: its flags,
// its limits, its health checks and its end after a signal.
package httpserve

import (
	"errors"
	"fmt"
	"net"

	"github.com/codexmcp/codexmcp/internal/webaddr"
	"github.com/spf13/pflag"
)

// Flags say where a server listens and how it is protected.
type Flags struct {
	// Listen is the address.
	Listen string
	// Proxy is the IP address of a proxy, or "".
	Proxy string
}

// defaultListen is the default of --listen.
const defaultListen = "127.0.0.1:4517"

// Add adds the flags to fs.
func (f *Flags) Add(fs *pflag.FlagSet) {
	fs.StringVar(&f.Listen, "listen", defaultListen, "the `ADDRESS` to listen on")
	fs.StringVar(&f.Proxy, "behind-proxy", "",
		"the IP `ADDRESS` of a proxy with TLS; requests from other addresses are refused")
}

// Check fails if other machines could connect without TLS.
func (f *Flags) Check() error {
	host, _, err := net.SplitHostPort(f.Listen)
	switch {
	case err != nil:
		return fmt.Errorf("--listen: want an address such as %s: %w", defaultListen, err)
	case f.Proxy != "" && net.ParseIP(f.Proxy) == nil:
		return fmt.Errorf("--behind-proxy: %q is not an IP address", f.Proxy)
	case f.Proxy == "" && !webaddr.Loopback(host):
		return fmt.Errorf("--listen %s: others on the network could read the token and all messages; set "+
			"--behind-proxy with the address of a proxy with TLS", f.Listen)
	}
	return nil
}

// CheckHosts fails if other machines can connect but http.hosts is empty.
func (f *Flags) CheckHosts(hosts []string) error {
	if host, _, _ := net.SplitHostPort(f.Listen); !webaddr.Loopback(host) && len(hosts) == 0 {
		return errors.New("http.hosts: missing; set the host names that clients use for this server, because " +
			"requests with another Host are refused")
	}
	return nil
}

// URL returns the URL of a path for clients on this machine.
func (f *Flags) URL(path string) string { return "http://" + f.Listen + path }
