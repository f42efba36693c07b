package servertest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"golang.org/x/tools/txtar"
)

// Lines serves a client that writes and reads the lines itself, and returns the client's end of
// the wire. The end of the test closes it.
func Lines(t testing.TB, s Server) jsonrpc.Transport {
	t.Helper()
	ours, theirs := jsonrpc.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), theirs) }()
	t.Cleanup(func() {
		ours.Close()
		must.Check(t, <-served)
	})
	return ours
}

// Read returns the next answer on a wire, which must contain a text.
func Read(t testing.TB, end jsonrpc.Transport, want string) string {
	t.Helper()
	for {
		line := must.Get(end.Read(t.Context()))(t)
		if !strings.Contains(string(line), `"id":`) || strings.Contains(string(line), `"method":`) {
			continue
		}
		if !strings.Contains(string(line), want) {
			t.Fatalf("%s: not %s", line, want)
		}
		return string(line)
	}
}

func (*Engine) AuthStatus(context.Context, protocol.GetAuthStatusParams) (*protocol.GetAuthStatusResult, error) {
	return &protocol.GetAuthStatusResult{AuthMethod: protocol.AuthAPIKey}, nil
}

func (*Engine) Logout(context.Context) error { return nil }

// SearchFiles implements [engine.Searcher]. A search for "slow" ends with its context.
func (*Engine) SearchFiles(
	ctx context.Context, p protocol.FuzzyFileSearchParams,
) (*protocol.FuzzyFileSearchResult, error) {
	if p.Query == "slow" {
		<-ctx.Done()
	}
	return &protocol.FuzzyFileSearchResult{Files: []protocol.FuzzyFile{}}, nil
}

// Plays reports whether a test plays row n of a large table: the gate plays three quarters of the rows in the step test,
// and the others with the race detector, where tests are short and a row takes ten times as long. Whole, for the step soak,
// plays all.
func Plays(n int, whole bool) bool { return whole || (n%4 == 1) == testing.Short() }

// record has what a part of a test did, in order. It is safe for concurrent use.
type record[T any] struct {
	mu  sync.Mutex
	all []T
}

// add adds to the record, and returns all of it.
func (r *record[T]) add(more ...T) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, more...)
	return r.all[:len(r.all):len(r.all)]
}

func (r *record[T]) list() []T { return slices.Clone(r.add()) }

// Section returns the section of a transcript with a name, "" without one.
func Section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// SetSection sets the section with a name, and adds it if there is none.
func SetSection(a *txtar.Archive, name, text string) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = []byte(text)
			return
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text)})
}
