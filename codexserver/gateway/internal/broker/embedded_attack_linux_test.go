package broker_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/google/go-cmp/cmp"
)

// sockets returns the sockets of this process, of every kind.
func sockets(t *testing.T) map[string]bool {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, "socket:") {
			all[to] = true
		}
	}
	return all
}

// TestEmbeddedHasNoSocket starts the server of this process. It has no socket, neither one that listens
// nor a connection, so a worker can inherit none, and there is no port or abstract name to find. Others
// cannot read its data, and only one process can use them.
func TestEmbeddedHasNoSocket(t *testing.T) {
	before := sockets(t)
	folder := filepath.Join(t.TempDir(), "nats")
	if err := os.Mkdir(folder, 0o755); err != nil { // as an older program, or a careless person, made it
		t.Fatal(err)
	}
	o := broker.Options{Folder: folder, Name: "test", Logger: slog.New(slog.DiscardHandler)}
	b, err := broker.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Open(t.Context(), broker.Bucket{Name: "x", Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, sockets(t)); diff != "" {
		t.Errorf("new sockets (-before +after):\n%s", diff)
	}
	info, err := os.Stat(folder)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has the mode %v", info.Mode())
	}
	if second, err := broker.Connect(o); err == nil || !strings.Contains(err.Error(), "is running") {
		t.Errorf("a second server with the same folder: %v", err)
		if err == nil {
			second.Close()
		}
	}
}
