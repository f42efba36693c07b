// Package broker connects to NATS. Without an address it runs a NATS server in this process,
// which does not listen anywhere: only this process can connect to it.
package broker

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// Options configure [Connect]. Logger is required.
type Options struct {
	// URL is the addresses of the servers, separated by commas. "" means a server in this
	// process.
	URL string
	// Credentials is a file with the user's JWT and seed. CA, Cert and Key are files for TLS.
	// "" means none.
	Credentials, CA, Cert, Key string
	// Name is for the operator of NATS.
	Name string
	// Folder is for the data of the server in this process. Others must not be able to read
	// it, and only one process may use it.
	Folder string
	Logger *slog.Logger
}

// Broker is a connection to NATS.
type Broker struct {
	// Conn is the connection, and Stream its JetStream.
	Conn   *nats.Conn
	Stream jetstream.JetStream

	cutOff atomic.Bool    // between the end of a connection and the next one
	server *server.Server // nil unless it runs in this process
	lock   *os.File
}

const (
	// connectTimeout bounds how long the start of a server or a connection takes.
	connectTimeout = 10 * time.Second
	// reconnectWait is the time between two attempts to connect again.
	reconnectWait = 250 * time.Millisecond
	// pingInterval is how often a connection is tried. It breaks after maxPings of them without an answer: then another server may
	// be there in time for the lease of a node.
	pingInterval = time.Second
	maxPings     = 3
	// writeTimeout is how long a server may read nothing. The connection does not notice meanwhile that it has no answers.
	writeTimeout = 5 * time.Second
	// maxMemory bounds what the server in this process keeps in memory, in bytes.
	maxMemory = 64 << 20
)

// Connect connects to NATS. The caller must close the broker. A connection that breaks is made
// again until then.
func Connect(o Options) (*Broker, error) {
	b := &Broker{}
	options := []nats.Option{
		nats.Name(o.Name), nats.Timeout(connectTimeout), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(maxPings), nats.FlusherTimeout(writeTimeout),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			b.cutOff.Store(true)
			if err != nil {
				o.Logger.Warn("the connection to NATS broke", "error", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			b.cutOff.Store(false)
			o.Logger.Info("connected to NATS again", "server", c.ConnectedUrlRedacted())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.Logger.Warn("NATS", "error", err) }),
		nats.IgnoreAuthErrorAbort(), // a file with credentials may be renewed
	}
	options = append(options, o.files()...)
	if o.URL == "" {
		if err := b.start(o); err != nil {
			return nil, errors.Join(fmt.Errorf("start the NATS server of this process: %w", err), b.Close())
		}
		options = append(options, nats.InProcessServer(b.server))
	}
	var err error
	if b.Conn, err = nats.Connect(o.URL, options...); err == nil {
		b.Stream, err = jetstream.New(b.Conn)
	}
	if err == nil {
		err = checkVersion(b.Conn.ConnectedServerVersion())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to NATS: %w", explain(err)), b.Close())
	}
	if !b.Embedded() && !b.Conn.AuthRequired() && o.Cert == "" {
		o.Logger.Warn("the NATS server wants no credentials: whoever can connect to it can act as any user, and so " +
			"can a command that has the network")
	}
	return b, nil
}

// files returns the options for the files. Their errors name the key of the configuration, and
// nothing of what a file has.
func (o *Options) files() (all []nats.Option) {
	for _, file := range []struct {
		key, path string
		option    func() nats.Option
	}{
		{"nats.credentials", o.Credentials, func() nats.Option { return credentials(o.Credentials) }},
		{"nats.ca", o.CA, func() nats.Option { return nats.RootCAs(o.CA) }},
		{"nats.cert, nats.key", o.Cert, func() nats.Option { return nats.ClientCert(o.Cert, o.Key) }},
	} {
		if file.path != "" {
			all = append(all, func(n *nats.Options) error {
				if err := file.option()(n); err != nil {
					return fileError{fmt.Errorf("%s: %w", file.key, err)}
				}
				return nil
			})
		}
	}
	return all
}

// fileError is about a file that the configuration names.
type fileError struct{ error }

// credentials checks a file before the client sends what is in it.
func credentials(path string) nats.Option {
	return func(n *nats.Options) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = nkeys.ParseDecoratedUserNKey(text)
		if err != nil || !bytes.Contains(text, []byte("BEGIN NATS USER JWT")) {
			return fmt.Errorf("%s does not have the JWT and the seed of a user, as nsc writes them", path)
		}
		return nats.UserCredentials(path)(n)
	}
}

// explain adds the key of the configuration to an error of the first connection.
func explain(err error) error {
	var file fileError
	var check *tls.CertificateVerificationError
	var remote *net.OpError
	switch {
	case errors.As(err, &file):
		return err
	case errors.As(err, &check):
		return fmt.Errorf("nats.ca, nats.url: the certificate of the server: %w", err)
	// an alert, or the end of the connection instead
	case errors.As(err, &remote) && remote.Op == "remote error", errors.Is(err, nats.ErrTLS):
		return fmt.Errorf("nats.cert: the server refuses the certificate of this process: %w", err)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired),
		errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired),
		errors.Is(err, nats.ErrNkeysNotSupported):
		return fmt.Errorf("nats.credentials: the server refuses them: %w", err)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("nats.url: the server has no TLS: %w", err)
	}
	return fmt.Errorf("nats.url: %w", err)
}

// start starts the server of this process.
func (b *Broker) start(o Options) (err error) {
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(o.Folder, 0o700); err != nil {
		return err
	}
	if b.lock, err = os.OpenFile(filepath.Join(o.Folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := safefile.Lock(b.lock); err != nil {
		if errors.Is(err, safefile.ErrLocked) {
			err = errors.New("another codex-mcp-gateway with the same $CODEX_HOME is running")
		}
		return fmt.Errorf("%s: %w", b.lock.Name(), err)
	}
	if b.server, err = server.NewServer(&server.Options{
		ServerName: "codex-mcp-gateway", DontListen: true, NoSigs: true, NoLog: true, NoSystemAccount: true,
		JetStream: true, StoreDir: o.Folder, JetStreamMaxMemory: maxMemory,
	}); err != nil {
		return err
	}
	b.server.Start()
	if !b.server.ReadyForConnections(connectTimeout) {
		return errors.New("it is not ready in time")
	}
	return nil
}

// Embedded reports whether the server runs in this process.
func (b *Broker) Embedded() bool { return b.server != nil }

// Check fails if NATS has not answered for a while. It does not wait, as the connection may while it writes.
func (b *Broker) Check() error {
	if b.cutOff.Load() {
		return errors.New("cut off from NATS")
	}
	return nil
}

// Close closes the connection, and ends the server of this process.
func (b *Broker) Close() error {
	if b.Conn != nil {
		b.Conn.Close()
	}
	if b.server != nil {
		b.server.Shutdown()
		b.server.WaitForShutdown()
	}
	if b.lock != nil {
		return b.lock.Close()
	}
	return nil
}
