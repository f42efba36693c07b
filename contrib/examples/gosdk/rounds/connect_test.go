package main

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect serves the example in memory and connects a client with that protocol version.
func connect(t *testing.T, repo, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	ours, theirs := mcp.NewInMemoryTransports()
	server, err := newServer(repo).Connect(ctx, theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, o).
		Connect(ctx, ours, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	if got := client.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("the protocol version is %s", got)
	}
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), server.Wait()); err != nil {
			t.Error(err)
		}
	})
	return client
}

func textOf(r *mcp.CallToolResult) string { return r.Content[0].(*mcp.TextContent).Text }

// repository returns the folder of a new repository with the branches main and old.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "init", "-q", "-b", "main")
	run(t, dir, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "--allow-empty", "-m", "first")
	run(t, dir, "branch", "old")
	return dir
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}
