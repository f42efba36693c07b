package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// httpOptions are the flags of codex-mcp http.
type httpOptions struct {
	listen    string
	showToken bool
	newToken  string // the principal to make a token for, or ""
	cert, key string // the files for TLS, or ""
	proxy     string // the IP address of a proxy, or ""
}

// defaultListen is the default of --listen.
const defaultListen = "127.0.0.1:4517"

// mcpPath is the path of the MCP endpoint.
const mcpPath = "/mcp"

func (o *options) httpCommand(settings *pflag.FlagSet) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "http [flags]",
		Short: "Serve MCP over HTTP, for many clients",
		Long: `Serves MCP over Streamable HTTP until it receives a signal. Work in progress may then
continue for drain.timeout. A request needs the token in
$CODEX_HOME/codex-mcp/http-token, which the first start makes. --show-token prints it
with the configuration of clients. Calls cannot choose approval-policy, config,
profile, sandbox or writable-roots, unless http.unlocked_arguments allows it.

By default only this machine can connect. For other machines set http.hosts, and
--tls-cert with --tls-key, or --behind-proxy.`,
		Args: o.noWords,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.http.check(cmd.Flags().Changed("new-token")); err != nil {
				return err
			}
			err := o.wantsServer()
			o.run = serveHTTP
			return err
		},
	}
	cmd.Flags().AddFlagSet(settings)
	fs := cmd.Flags()
	fs.StringVar(&o.http.listen, "listen", defaultListen, "the `ADDRESS` to listen on")
	fs.BoolVar(&o.http.showToken, "show-token", false, "print the token and the configuration of clients, and exit")
	fs.StringVar(&o.http.newToken, "new-token", "", "make a token for the principal `NAME`, print it with its hash for codex-mcp.toml, and exit")
	fs.StringVar(&o.http.cert, "tls-cert", "", "the `FILE` of a certificate with its chain, read again when it changes")
	fs.StringVar(&o.http.key, "tls-key", "", "the `FILE` of the certificate's key")
	fs.StringVar(&o.http.proxy, "behind-proxy", "", "the IP `ADDRESS` of a proxy with TLS; requests from other addresses are refused")
	return cmd
}

// check checks the flags. It fails if other machines could connect without TLS. newToken
// reports whether --new-token is set.
func (o *httpOptions) check(newToken bool) error {
	if newToken {
		if err := config.CheckPrincipalName(o.newToken); err != nil {
			return fmt.Errorf("--new-token: %w", err)
		}
	}
	host, _, err := net.SplitHostPort(o.listen)
	switch {
	case err != nil:
		return fmt.Errorf("--listen: want an address such as %s: %w", defaultListen, err)
	case (o.cert == "") != (o.key == ""):
		return errors.New("--tls-cert and --tls-key belong together: set both, or neither")
	case o.proxy != "" && net.ParseIP(o.proxy) == nil:
		return fmt.Errorf("--behind-proxy: %q is not an IP address", o.proxy)
	case o.cert != "" || o.proxy != "":
		return nil
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen %s: others on the network could read the token and all messages; set --tls-cert and --tls-key, or --behind-proxy with the address of a proxy with TLS", o.listen)
	}
	return nil
}

// serveHTTP runs codex-mcp http and returns its exit status.
func serveHTTP(ctx context.Context, o *options, stdout, stderr io.Writer) int {
	defer surviveBrokenPipes()()
	c, err := configure(o, os.Getenv, o.logger(stderr))
	if o.http.newToken != "" {
		// Ignore err: a principal without a token is an error, and the new token fixes it.
		return o.http.printNewToken(stdout, stderr, c)
	}
	if err != nil {
		return fail(stderr, err)
	}
	if len(c.settings.HTTP.Principals) > 0 {
		if err := c.serveUsers(ctx, o, stderr); err != nil {
			return fail(stderr, err)
		}
		return 0
	}
	token, err := loadToken(c.home)
	if err != nil {
		return fail(stderr, fmt.Errorf("the token: %w", err))
	}
	if o.http.showToken {
		if err := printToken(stdout, o.http.url(), token); err != nil {
			return fail(stderr, err)
		}
		return 0
	}
	c.warn(o, stderr)
	if err := c.serveHTTP(ctx, o, token, stderr); err != nil {
		return fail(stderr, err)
	}
	return 0
}

// url returns the server's URL for clients on this machine.
func (o *httpOptions) url() string {
	scheme := "http"
	if o.cert != "" {
		scheme = "https"
	}
	return scheme + "://" + o.listen + mcpPath
}

// checkHosts fails if other machines can connect but http.hosts is empty.
func (c *configuration) checkHosts(o *options) error {
	if host, _, _ := net.SplitHostPort(o.http.listen); !isLoopback(host) && len(c.settings.HTTP.Hosts) == 0 {
		return errors.New("http.hosts: missing; set the host names that clients use for this server, because requests with another Host are refused")
	}
	return nil
}

// challenge begins the WWW-Authenticate of a refusal.
const challenge = `Bearer realm="codex-mcp"`

// admission returns the options that decide which requests are served. The caller sets
// Authenticate.
func (c *configuration) admission() streamable.Options {
	hosts := c.settings.HTTP.Hosts
	if len(hosts) > 0 {
		hosts = append(slices.Clip(hosts), "localhost", "127.0.0.1", "::1")
	}
	return streamable.Options{Challenge: challenge, Hosts: hosts, Origins: c.settings.HTTP.Origins, Logger: c.log}
}

// serveHTTP serves the one user who started the server.
func (c *configuration) serveHTTP(ctx context.Context, o *options, token string, stderr io.Writer) error {
	if err := c.checkHosts(o); err != nil {
		return err
	}
	c.settings.LockedArguments = c.settings.HTTP.Locked(c.settings.LockedArguments, "")
	end, err := c.observe()
	if err != nil {
		return err
	}
	defer end()
	e, err := choose(ctx, o, c)
	if err != nil {
		return err
	}
	c.log.Info("engine", "name", e.name, "reason", e.reason)
	err = c.withServer(o, e, func(s *codexserver.Server) error {
		admission := c.admission()
		admission.Authenticate, admission.Report = bearer(token), c.telemetry.Report
		handler, err := streamable.New(s, &admission)
		if err != nil {
			return err
		}
		c.telemetry.Watch(handler)
		m := http.NewServeMux()
		m.Handle(mcpPath, c.telemetry.Handler(handler))
		return c.listen(ctx, o, m, handler, "codex-mcp http --show-token prints the token", stderr)
	})
	return errors.Join(err, e.Close())
}

// isLoopback reports whether a host is localhost or a loopback address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

const (
	// headerTimeout bounds how long a client takes for the headers of a request.
	headerTimeout = 10 * time.Second
	// readTimeout bounds how long a client takes for a whole request, if its handler does
	// not set a deadline.
	readTimeout = time.Minute
	// keepAlive is how long an idle connection stays open.
	keepAlive = 2 * time.Minute
	// maxHeader bounds the headers of a request, in bytes.
	maxHeader = 64 << 10
	// shutdownTimeout bounds how long the server answers its last requests.
	shutdownTimeout = time.Second
	// maxConnections bounds the open connections. Further ones wait.
	maxConnections = 2048
)

// backend does the work of requests: a handler, or the workers of several users.
type backend interface {
	Drain(context.Context) error
	Close() error
}

// listen serves m until it receives a signal or ctx ends. After a signal it drains the
// backend, until its work ends, drain.timeout expires, or a second signal arrives. In the end
// it closes the backend. hint is printed after the URL.
func (c *configuration) listen(ctx context.Context, o *options, m *http.ServeMux, handler backend, hint string, stderr io.Writer) error {
	config, err := o.http.tls()
	if err != nil {
		return errors.Join(err, handler.Close())
	}
	l, err := net.Listen("tcp", o.http.listen)
	if err != nil {
		return errors.Join(err, handler.Close())
	}
	o.http.listen = l.Addr().String() // has the real port if --listen has port 0
	closeMetrics, err := c.serveMetrics(stderr)
	if err != nil {
		return errors.Join(err, l.Close(), handler.Close())
	}
	var draining atomic.Bool
	server := newServer(onlyFrom(o.http.proxy, withHealth(m, &draining)), c.log)
	server.TLSConfig = config
	serving := make(chan error, 1)
	go func() {
		l := limitListener(l, maxConnections)
		if config != nil {
			serving <- server.ServeTLS(l, "", "")
			return
		}
		serving <- server.Serve(l)
	}()
	fmt.Fprintf(stderr, "codex-mcp: serving MCP at %s; %s\n", o.http.url(), hint)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endingSignals()...)
	defer signal.Stop(signals)
	select {
	case err = <-serving:
	case <-ctx.Done():
	case <-signals:
		draining.Store(true)
		err = c.drain(ctx, handler, signals)
	}
	err = errors.Join(err, handler.Close(), shutDown(server), closeMetrics())
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// newServer returns the server for a handler. It has no WriteTimeout, because the handler's
// streams set their own deadlines.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: keepAlive, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// shutDown closes a server whose backend is closed. It first answers the requests that have
// arrived, so that a proxy can send them to another server. If their connections broke, the
// proxy could not know whether they had begun.
func shutDown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if server.Shutdown(ctx) == nil {
		return nil
	}
	return server.Close()
}

// drain waits for the work in progress, at most for drain.timeout. Another signal ends the
// wait.
func (c *configuration) drain(ctx context.Context, h backend, signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(ctx, c.settings.HTTP.Drain)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- h.Drain(ctx) }()
	select {
	case <-ended:
	case <-signals:
		cancel()
		<-ended
	}
	return nil // Close interrupts the work that has not ended
}

// withHealth adds /healthz and /readyz to m.
func withHealth(m *http.ServeMux, draining *atomic.Bool) http.Handler {
	m.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	m.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if draining.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, "draining")
			return
		}
		fmt.Fprintln(w, "ready")
	})
	return m
}

// onlyFrom refuses requests that do not come from the proxy. If proxy is "", it returns h.
func onlyFrom(proxy string, h http.Handler) http.Handler {
	if proxy == "" {
		return h
	}
	ip := net.ParseIP(proxy)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil || !net.ParseIP(host).Equal(ip) {
			http.Error(w, "connect through the proxy of this server", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
