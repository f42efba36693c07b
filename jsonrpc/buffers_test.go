package jsonrpc_test

import (
	"context"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// heap returns the bytes in use after a collection.
func heap() int {
	runtime.GC()
	runtime.GC() // the second collection empties a sync.Pool
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestMemoryAfterLongLine checks that the memory of a long line is freed, for an idle peer and
// for a handler that keeps a few bytes of a line that was read with it.
func TestMemoryAfterLongLine(t *testing.T) {
	const size, bound = 33 << 20, 4 << 20
	long := `{"jsonrpc":"2.0","id":1,"method":"drop","params":["` + strings.Repeat("x", size) + `"]}` + "\n"
	bubble(t, func(t *testing.T) {
		var kept []json.RawMessage
		h := jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
			if r.Method == "keep" {
				kept = append(kept, r.Params)
			}
			return nil, nil
		})
		r := newRaw(t, h, &jsonrpc.Options{MaxConcurrent: 1})
		r.run(context.Background())
		before := heap()
		check := func(when string) {
			t.Helper()
			synctest.Wait()
			if n := heap() - before; n > bound {
				t.Errorf("%s the peer holds %d KiB", when, n>>10)
			}
		}
		write := func(s string) { _, _ = io.WriteString(r.in, s+"\n") } // an error makes want fail
		go write(long)
		r.want(`{"jsonrpc":"2.0","id":1,"result":null}`)
		check("when idle")
		go write(long + `{"jsonrpc":"2.0","id":2,"method":"keep","params":[1,2]}`)
		r.want(`{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":2,"result":null}`)
		check("with six bytes kept")
		if diff := cmp.Diff([]json.RawMessage{json.RawMessage("[1,2]")}, kept); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
	})
}
