// Package httpserve runs an HTTP server that other machines reach only with TLS: its flags,
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
	// Cert and Key are the files for TLS, or "". See AddTLS.
	Cert, Key string
	// Proxy is the IP address of a proxy, or "".
	Proxy string

	tls bool // there are flags for TLS
}

// defaultListen is the default of --listen.
const defaultListen = "127.0.0.1:4517"

// Add adds the flags to fs.
func (f *Flags) Add(fs *pflag.FlagSet) {
	fs.StringVar(&f.Listen, "listen", defaultListen, "the `ADDRESS` to listen on")
	fs.StringVar(&f.Proxy, "behind-proxy", "", "the IP `ADDRESS` of a proxy with TLS; requests from other addresses are refused")
}

// AddTLS adds the flags for TLS of its own to fs. Only a server for several users has them.
func (f *Flags) AddTLS(fs *pflag.FlagSet) {
	f.tls = true
	fs.StringVar(&f.Cert, "tls-cert", "", "the `FILE` of a certificate with its chain, read again when it changes")
	fs.StringVar(&f.Key, "tls-key", "", "the `FILE` of the certificate's key")
}

// Check fails if other machines could connect without TLS.
func (f *Flags) Check() error {
	host, _, err := net.SplitHostPort(f.Listen)
	switch {
	case err != nil:
		return fmt.Errorf("--listen: want an address such as %s: %w", defaultListen, err)
	case (f.Cert == "") != (f.Key == ""):
		return errors.New("--tls-cert and --tls-key belong together: set both, or neither")
	case f.Proxy != "" && net.ParseIP(f.Proxy) == nil:
		return fmt.Errorf("--behind-proxy: %q is not an IP address", f.Proxy)
	case f.Cert != "" || f.Proxy != "":
		return nil
	}
	if !webaddr.Loopback(host) {
		own := ""
		if f.tls {
			own = "--tls-cert and --tls-key, or "
		}
		return fmt.Errorf("--listen %s: others on the network could read the token and all messages; set %s--behind-proxy with the address of a proxy with TLS", f.Listen, own)
	}
	return nil
}

// CheckHosts fails if other machines can connect but http.hosts is empty.
func (f *Flags) CheckHosts(hosts []string) error {
	if host, _, _ := net.SplitHostPort(f.Listen); !webaddr.Loopback(host) && len(hosts) == 0 {
		return errors.New("http.hosts: missing; set the host names that clients use for this server, because requests with another Host are refused")
	}
	return nil
}

// URL returns the URL of a path for clients on this machine.
func (f *Flags) URL(path string) string {
	scheme := "http"
	if f.Cert != "" {
		scheme = "https"
	}
	return scheme + "://" + f.Listen + path
}
