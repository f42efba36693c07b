package workers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func decided(principal string) string {
	return fmt.Sprintf(`{"event":"decided","time":"2020-01-01T00:00:00Z","threadId":"t",%s"kind":"command","command":["ls"],"decision":"denied","by":"client"}`, principal)
}

// TestHostileLogs checks what a taken-over worker can do with the log: it appends lines of its own user, and nothing else.
// TestStamp of codexserver/internal/record has more of them.
func TestHostileLogs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	log := must.Get(safefile.OpenLog(file, 0))(t)
	t.Cleanup(func() { log.Close() })
	p := newPool(Options{})
	p.record = log
	nonsense := 0
	as := func(user string) func([]byte) error { return p.served(user, nil, func(error) { nonsense++ }).Record }
	read := func() string { return string(must.Get(os.ReadFile(file))(t)) }
	if err := as("bob")([]byte(decided(""))); err != nil || !strings.Contains(read(), `"principal":"bob"`) {
		t.Fatal(err, read())
	}
	for name, tt := range map[string]struct {
		line string
		want string // a part of what is written; "" if the worker is killed
	}{
		"as another user":       {decided(`"principal":"bob",`), `"principal":"ann"`},
		"a line in a line":      {decided("") + "\n" + decided(`"principal":"bob",`), ""},
		"a line in white space": {strings.Replace(decided(""), `["ls"]`, "[\n\r\n\"ls\"]", 1), `"command":["ls"]`},
	} {
		t.Run(name, func(t *testing.T) {
			was, bad := read(), nonsense
			err := as("ann")([]byte(tt.line))
			got, ok := strings.CutPrefix(read(), was)
			if !ok {
				t.Fatal("older lines have changed")
			}
			if tt.want == "" {
				if err == nil || got != "" || nonsense == bad {
					t.Errorf("%v, %q", err, got)
				}
				return
			}
			if err != nil || strings.Count(got, "\n") != 1 || !strings.Contains(got, tt.want) || strings.Contains(got, "2020-") || strings.Contains(got, `"principal":"bob",`) {
				t.Errorf("%v, %q", err, got)
			}
		})
	}
}
