package client_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// childHome is, in a process that is a test's server, the folder for its data.
const childHome = "CODEXMCP_CLIENT_TEST_HOME"

func TestMain(m *testing.M) {
	home := os.Getenv(childHome)
	if home == "" {
		_ = flag.Set("test.parallel", "5") // most of them wait
		os.Exit(memdir.Run(m))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := newServer(home).Serve(ctx, jsonrpc.Stdio()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// grace is how long a call of a test's server runs before it becomes a task.
const grace = 10 * time.Millisecond

func newServer(home string) *codexserver.Server {
	return codexserver.New(servertest.Script(), &codexserver.Options{
		Home: home, Changes: codexserver.ChangeOptions{Read: new(false)}, Tasks: codexserver.TaskOptions{Grace: grace},
		Approvals: elicit.Options{OnUnsupported: elicit.PolicyDeny}, // over HTTP a question would wait for another client
	})
}

// places are the ways to start a server.
func places() map[string]func(t *testing.T, o client.Options) client.Options {
	return map[string]func(t *testing.T, o client.Options) client.Options{
		"in-process": func(t *testing.T, o client.Options) client.Options {
			home := testenv.Home(t)
			o.Server = newServer(home)
			return o
		},
		"child": func(t *testing.T, o client.Options) client.Options {
			o.Command = child(testenv.Home(t))
			return o
		},
		"url": func(t *testing.T, o client.Options) client.Options {
			s := serveHTTP(t, testenv.Home(t))
			o.URL, o.Token = s.URL, "secret"
			return o
		},
	}
}

// serveHTTP serves the script over HTTP until the end of the test, or until the server is closed.
func serveHTTP(t *testing.T, home string) *httptest.Server {
	t.Helper()
	h := must.Get(streamable.New(newServer(home), &streamable.Options{Authenticate: func(r *http.Request) (string, error) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			return "", errors.New("no token")
		}
		return "ann", nil
	}}))(t)
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		_ = h.Close()
		s.Close()
	})
	return s
}

// child is the command of a server in a process of its own.
func child(home string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childHome+"="+home, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}

// start starts a client that the end of the test closes.
func start(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	c := must.Get(client.Start(t.Context(), &o))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}
