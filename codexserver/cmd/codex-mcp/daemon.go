package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coder/websocket"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/jsonrpc/wsrpc"
	"github.com/go-json-experiment/json"
)

// socketScheme begins the address of a Unix socket. Nothing after it is Codex's own socket.
const socketScheme = "unix://"

// controlSocket returns the socket of Codex's daemon.
func controlSocket(home string) string {
	return filepath.Join(home, "app-server-control", "app-server-control.sock")
}

// dialer returns the function that connects to the app-server at an address.
func (c *configuration) dialer(at string) func(context.Context) (jsonrpc.Transport, error) {
	return func(ctx context.Context) (jsonrpc.Transport, error) {
		path, isSocket := strings.CutPrefix(at, socketScheme)
		if !isSocket {
			conn, _, err := websocket.Dial(ctx, at, nil)
			if err != nil {
				return nil, fmt.Errorf("connect to %s: %w", at, err)
			}
			return wsrpc.New(conn), nil
		}
		if path == "" {
			path = controlSocket(c.home)
		}
		conn, _, err := dialSocket(ctx, path)
		if err != nil {
			return nil, err
		}
		return webSocket(ctx, conn)
	}
}

// alone returns why the daemon cannot be used, or "". It sees neither our command line nor
// our environment.
func (c *configuration) alone(at string) string {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(c.overrides)), config.Ours)
	switch {
	case at != "":
		return "--codex names a program"
	case os.Getenv("CODEX_BIN") != "":
		return "CODEX_BIN names a program"
	case c.observer != nil:
		return "this is a worker of the gateway"
	case c.strict:
		return "--strict-config is set"
	case len(keys) > 0:
		return "the command line sets " + strings.Join(keys, ", ")
	}
	return ""
}

// attach connects to Codex's daemon if one runs.
func (c *configuration) attach(ctx context.Context) (jsonrpc.Transport, error) {
	path := controlSocket(c.home)
	if _, err := os.Lstat(path); err != nil {
		return nil, fmt.Errorf("%w: none runs", appserver.ErrNoDaemon)
	}
	conn, pid, err := dialSocket(ctx, path)
	if err == nil {
		// Commands may be able to write where Codex has the socket itself, below /tmp. They
		// cannot write to this file.
		if err = c.isDaemon(pid); err != nil {
			err = errors.Join(err, conn.Close())
		}
	}
	var t jsonrpc.Transport
	if err == nil {
		t, err = webSocket(ctx, conn)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", appserver.ErrNoDaemon, err)
	}
	return t, nil
}

// isDaemon returns an error unless a process is the daemon that Codex has recorded.
func (c *configuration) isDaemon(pid int) error {
	folder := filepath.Join(c.home, "app-server-daemon")
	if err := private(folder); err != nil {
		return err
	}
	raw, err := safefile.Read(filepath.Join(folder, "daemon.pid"), 1<<16)
	if err != nil {
		return fmt.Errorf("the app-server was not started as a daemon: %w", err)
	}
	var recorded struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(raw, &recorded); err != nil {
		return fmt.Errorf("daemon.pid: %w", err)
	}
	if pid == 0 || recorded.PID != pid {
		return fmt.Errorf("process %d has the socket, and the daemon is process %d", pid, recorded.PID)
	}
	return nil
}

// webSocket begins the WebSocket of a connection to an app-server.
func webSocket(ctx context.Context, conn net.Conn) (jsonrpc.Transport, error) {
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}}
	ws, _, err := websocket.Dial(ctx, "ws://localhost/", &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the app-server: %w", err), conn.Close())
	}
	return wsrpc.New(ws), nil
}
