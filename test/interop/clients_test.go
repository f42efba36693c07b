package interop

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/test/interop/internal/wire"
)

// A client is one of the official ones.
type client interface {
	// release is the client's package and version.
	release(t *testing.T) string
	// cannot returns why a cell of the table does not apply to the client on that
	// way to the server, or "" if it does.
	cannot(cell string, over way) string
	// connect starts the server, or connects to the one at the setup's URL. Questions
	// and progress go to w.
	connect(ctx context.Context, s setup, w *witness) (session, error)
}

// A session is a client's connection with the server.
type session interface {
	// list names the tools.
	list(ctx context.Context) ([]string, error)
	// call calls a tool, and cancels the call when ctx ends.
	call(ctx context.Context, c call) (result, error)
	close() error
}

// A taskSession is one whose calls may become tasks.
type taskSession interface {
	session
	// begin calls a tool, leaves when the call has become a task, and returns a reference.
	begin(ctx context.Context, c call) (reference json.RawMessage, err error)
	// resume takes up the task, perhaps of another session, and returns its result.
	resume(ctx context.Context, reference json.RawMessage) (result, error)
}

// The versions of MCP that the clients speak with the server.
const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
	older  = "2025-06-18"
)

var clients = []struct {
	name    string
	version string // of MCP
	client  client
}{
	{"TypeScript SDK 1", legacy, typescript{name: "sdk"}},
	{"TypeScript SDK 2, auto", modern, typescript{"client", "auto"}},
	{"TypeScript SDK 2, pinned", modern, typescript{"client", modern}},
	{"TypeScript SDK 2 with tasks", modern, typescript{taskClient, modern}},
	{"Go SDK", modern, gosdk{}},
	{"Go SDK, pinned", legacy, gosdk{legacy}},
	{"Codex", older, codexClient{}},
	{"Codex, both switches", modern, codexClient{modern: true}},
}

var whole = flag.Bool("whole", nightly.Tests(), "run every cell of the tables")

// draw returns what the gate runs, by engine, client and cell. Every client runs every cell once, on the
// engines and over the ways to them in turn. Then come cells for clients and for cells that a way lacks.
// All others are left to soak.
func draw(engines []engine) map[[3]string]bool {
	drawn, met := map[[3]string]bool{}, map[[2]string]bool{}
	add := func(e, client, cell string) {
		drawn[[3]string{e, client, cell}] = true
		met[[2]string{e, client}], met[[2]string{e, cell}] = true, true
	}
	for c, client := range clients {
		for k, cell := range cells {
			var names []string
			for _, e := range engines {
				if cannot(client.client, cell, e.over) == "" {
					names = append(names, e.name)
				}
			}
			if len(names) > 0 {
				add(names[(c+k)%len(names)], client.name, cell.name)
			}
		}
	}
	for _, e := range engines {
		for _, client := range clients {
			for _, cell := range cells {
				if cannot(client.client, cell, e.over) == "" && (!met[[2]string{e.name, client.name}] || !met[[2]string{e.name, cell.name}]) {
					add(e.name, client.name, cell.name)
				}
			}
		}
	}
	return drawn
}

// cannot returns why a cell does not apply, or "" if it does.
func cannot(c client, cell cell, over way) string {
	if ts, ok := c.(typescript); cell.tasks && (!ok || ts.name != taskClient) {
		return "Only with the client for tasks does the test take up a task of an earlier connection."
	}
	return c.cannot(cell.name, over)
}

// TestClients runs the cells of a table with every official client on every engine: those that are drawn, or all with -whole.
func TestClients(t *testing.T) {
	t.Parallel()
	server := ours(t)
	all := engines(t)
	for _, c := range clients {
		t.Logf("%s: %s, MCP %s", c.name, c.client.release(t), c.version)
	}
	drawn := draw(all)
	t.Run("background", func(t *testing.T) {
		t.Parallel()
		background(t, server, all)
	})
	for _, e := range all {
		for _, c := range clients {
			for _, cell := range cells {
				if cannot(c.client, cell, e.over) != "" || !*whole && !drawn[[3]string{e.name, c.name, cell.name}] {
					continue
				}
				t.Run(e.name+"/"+c.name+"/"+cell.name, func(t *testing.T) {
					t.Parallel()
					meet(t, server, e, c.client, c.version, cell)
				})
			}
		}
	}
}

// meeting is a client's session with the server, and what both saw.
type meeting struct {
	session
	*witness
	engine  engine
	version string               // of MCP
	model   *providertest.Server // the server's
	cwd     string
	path    string // of the trace of all servers
	again   func() (session, error)
}

// modern reports whether questions should come in results.
func (m *meeting) modern() bool { return m.version == modern }

// meet plays a cell and checks its effects.
func meet(t *testing.T, server []string, e engine, c client, version string, cell cell) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*limit) // the Inspector starts a Node for each step
	defer cancel()
	dir := t.TempDir()
	m := &meeting{
		witness: &witness{answer: cell.answer, decisions: cell.decisions, together: cell.together && version != modern},
		engine:  e, version: version, model: providertest.New(), cwd: filepath.Join(dir, "work"), path: filepath.Join(dir, "trace"),
	}
	defer m.model.Close()
	if err := os.Mkdir(m.cwd, 0o700); err != nil {
		t.Fatal(err)
	}
	home := newHome(t, m.model, e.wire)
	// With the installed Codex a trace below /tmp is refused, unless commands cannot write there.
	traced := []string{"--trace", m.path, "-c", "sandbox_workspace_write.exclude_slash_tmp=true", "-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true"}
	s := e.open(t, server, home, m.cwd, slices.Concat(cell.flags, traced)...)
	s.Asks, s.Dir, s.Codex = cell.answer != "", dir, newest(t)
	defer func() {
		if t.Failed() {
			asked, progress := m.seen()
			t.Logf("asked %q, progress %+v, wire:\n%s", asked, progress, m.trace(t))
			for i, r := range m.model.Requests() {
				t.Logf("model request %d, its end: %s", i, r.Body[max(0, len(r.Body)-2000):])
			}
		}
	}()
	func() {
		var err error
		m.again = func() (session, error) { return c.connect(ctx, s, m.witness) }
		if m.session, err = m.again(); err != nil {
			t.Errorf("connect: %v", err)
			return
		}
		defer func() {
			if err := m.close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		cell.play(ctx, t, m)
	}()
	messages := m.wire(t)
	if got := wire.Negotiated(messages); got != version {
		t.Errorf("they speak MCP %s, want %s", got, version)
	}
	if m.modern() {
		for _, fault := range wire.Broken(messages) {
			t.Errorf("wire: %s", fault)
		}
	}
	if cell.check != nil && !t.Failed() {
		cell.check(t, m)
	}
}
