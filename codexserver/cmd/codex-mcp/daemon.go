package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/coder/websocket"
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
		own := path == ""
		if own {
			path = controlSocket(c.home)
		}
		conn, pid, err := dialSocket(ctx, path)
		if err != nil {
			return nil, err
		}
		if own {
			// Commands may be able to write where Codex has the socket itself, below /tmp. They
			// cannot write to the record.
			if err := c.isDaemon(pid); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
		}
		return webSocket(ctx, conn)
	}
}

// isDaemon returns an error if Codex has recorded another process than pid as its daemon.
func (c *configuration) isDaemon(pid int) error {
	folder := filepath.Join(c.home, "app-server-daemon")
	raw, err := safefile.Read(filepath.Join(folder, "daemon.pid"), 1<<16)
	if errors.Is(err, os.ErrNotExist) {
		return nil // an app-server that a person has started
	}
	if err == nil {
		err = private(folder)
	}
	var recorded struct {
		PID int `json:"pid"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &recorded)
	}
	if err != nil {
		return fmt.Errorf("daemon.pid: %w", err)
	}
	if pid == 0 || recorded.PID != pid {
		return fmt.Errorf("process %d has the socket, and the daemon of Codex is process %d", pid, recorded.PID)
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
