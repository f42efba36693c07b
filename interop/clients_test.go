package interop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// A client is one of the official ones, driven by a script.
type client interface {
	// release is the client's package and version.
	release(t *testing.T) string
	// cannot is why a cell of the table does not apply to the client by its
	// nature; "" when it does.
	cannot(cell string) string
	// play runs the script. The call that is to be cancelled is cancelled when
	// enough is closed.
	play(ctx context.Context, s script, enough <-chan struct{}) (report, error)
}

var clients = []struct {
	name string
	client
}{
	{"TypeScript SDK", typescript{}},
	{"Go SDK", gosdk{}},
	{"mcp-go", mcpgo{}},
	{"Inspector --cli", inspectorCLI{}},
	{"Inspector mcpdo", inspectorMcpdo{}},
}

// TestClients lets every official client meet every engine in every cell of
// the table in docs/interop.md.
func TestClients(t *testing.T) {
	server := ours(t)
	seen := &table{engines: engines(t), cells: map[[3]string]string{}}
	for _, c := range clients {
		seen.releases = append(seen.releases, c.release(t))
	}
	t.Run("cells", func(t *testing.T) {
		for _, e := range seen.engines {
			for _, c := range clients {
				for _, cell := range cells {
					if why := c.cannot(cell.name); why != "" {
						seen.put(e.name, c.name, cell.name, why)
						continue
					}
					t.Run(e.name+"/"+c.name+"/"+cell.name, func(t *testing.T) {
						t.Parallel()
						defer func() { seen.put(e.name, c.name, cell.name, map[bool]string{false: "yes", true: "NO"}[t.Failed()]) }()
						meet(t, server, e, c.client, cell)
					})
				}
			}
		}
	})
	if got, want := len(seen.cells), len(cells)*len(clients)*len(seen.engines); got != want {
		t.Logf("%d of %d cells ran: the document is not compared", got, want) // -run chose some
		return
	}
	compareDocument(t, "clients", seen.markdown())
}

// meeting is what is left of a client's meeting with the server.
type meeting struct {
	report
	*providertest.Server // the model
	engine               engine
	cwd                  string
	trace                string // what went over the wire, of all servers that the client started
}

// meet plays a cell's script and has its effects checked.
func meet(t *testing.T, server []string, e engine, c client, cell cell) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	dir := t.TempDir()
	m := &meeting{Server: providertest.New(), engine: e, cwd: filepath.Join(dir, "work")}
	defer m.Close()
	if err := os.Mkdir(m.cwd, 0o700); err != nil {
		t.Fatal(err)
	}
	home, trace := newHome(t, m.Server, e.wire), filepath.Join(dir, "trace")
	s := script{
		Command: slices.Concat(server, e.flags, []string{"-trace", trace}),
		Cwd:     m.cwd,
		Env:     map[string]string{"PATH": os.Getenv("PATH"), "HOME": home, "CODEX_HOME": home, "TERM": "xterm"},
		Answer:  cell.answer,
		List:    cell.list,
		Calls:   cell.calls(m.cwd),
	}
	var enough <-chan struct{}
	var ended func() error
	if cell.lingers {
		enough, ended = linger(ctx, t, m)
	} else {
		m.Add(cell.turns(e)...)
	}
	var err error
	m.report, err = c.play(ctx, s, enough)
	if ended != nil {
		err = errors.Join(err, ended())
	}
	wire, readErr := os.ReadFile(trace)
	m.trace = string(wire)
	if err := errors.Join(err, readErr); err != nil {
		t.Errorf("play: %v", err)
	} else {
		cell.check(t, m)
	}
	if t.Failed() {
		t.Logf("report: %+v\nwire:\n%s", m.report, m.trace)
		for i, r := range m.Requests() {
			t.Logf("model request %d, its end: %s", i, r.Body[max(0, len(r.Body)-2000):])
		}
	}
}
