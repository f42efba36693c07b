package main

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
)

func TestMain(m *testing.M) {
	enclosure.Main()
	os.Exit(m.Run())
}

// TestMeasures measures each figure in the smallest size, on the real programs. The program checks
// answers, and how nodes share the users, itself.
func TestMeasures(t *testing.T) {
	enclosuretest.Need(t)
	l := &lab{size: size{nodes: []int{direct, alone, 3}, rounds: 1, calls: 1, pieces: 50, busy: 5, idle: 4, lasts: 50 * time.Millisecond}}
	if err := l.run(t.Context(), boxtest.Outside(t), "calls", "states", "idle"); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", &l.table)
	may := regexp.MustCompile("CPU|NATS writes|without a worker: MiB") // be nothing, in so short a time
	if os.Geteuid() != 0 {
		may = regexp.MustCompile("CPU|NATS writes|MiB")
	}
	exactly := map[string][]float64{ // two for each worker; three NATS servers, a front, three nodes with a fence
		"one user of 6: processes":                  {1, 3, 12},
		"5 workers idle: processes of each":         {0, 2, 2},
		"5 wait for the model: processes of each":   {0, 2, 2},
		"5 wait for an approval: processes of each": {0, 2, 2},
		"4 without a worker: processes of each":     {0, 0, 0},
	}
	if got := [2]int{len(l.table.rows), len(l.table.columns)}; got != [2]int{68, 4} {
		t.Errorf("%d rows and columns", got)
	}
	compared := regexp.MustCompile("^[0-9]|^first") // with one user, which the direct way has
	calls := regexp.MustCompile("^(`|a stream)")    // the only ones of the plain proxy
	for _, row := range l.table.rows {
		for i, column := range l.table.columns {
			v := l.table.value(column, row)
			if i == 0 && compared.MatchString(row) || i == 3 && !calls.MatchString(row) {
				continue
			}
			if want, ok := exactly[row]; ok && v != want[i] || !ok && !may.MatchString(row) && !(v > 0) {
				t.Errorf("%s, %s: %v", row, column, v)
			}
		}
	}
}
