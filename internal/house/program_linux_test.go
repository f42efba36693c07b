//go:build amd64

package house_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/gobuild"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestProgram compares what codex-mcp depends on, weighs and allocates before main with
// program.txt. A commit that adds a package or raises a figure says why.
func TestProgram(t *testing.T) {
	root(t)
	const program, file = "./codexserver/cmd/codex-mcp", "internal/house/program.txt"
	list := must.Get(exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", program).Output())(t)
	var got []string
	for pkg := range strings.FieldsSeq(string(list)) {
		if !strings.HasPrefix(pkg, module+"/") && !strings.Contains(pkg+"/", "/internal/") {
			got = append(got, "package "+pkg)
		}
	}
	slices.Sort(got)

	bin := filepath.Join(t.TempDir(), "codex-mcp")
	if err := gobuild.Program(bin, program); err != nil { // without symbols, as a release
		t.Fatal(err)
	}
	info := must.Get(os.Stat(bin))(t)
	cmd := exec.Command(bin, "-version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, trace)
	}
	const most = 400e3 // bytes that a package may allocate
	total := 0.0
	for _, m := range regexp.MustCompile(`(?m)^init (\S+) .* (\d+) bytes, \d+ allocs$`).FindAllStringSubmatch(string(trace), -1) {
		bytes := must.Get(strconv.ParseFloat(m[2], 64))(t)
		if total += bytes; bytes > most {
			t.Errorf("init of %s allocates %.0f bytes, more than %.0f", m[1], bytes, most)
		}
	}
	if total == 0 {
		t.Fatalf("no init in %s", trace)
	}
	var packages []string
	bounds := map[string]float64{}
	for line := range strings.Lines(read(t, file)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " at most ")
		if !ok {
			packages = append(packages, name)
		} else if bounds[name], err = strconv.ParseFloat(value, 64); err != nil {
			t.Fatal(err)
		}
	}
	for _, figure := range []struct {
		name      string
		got, step float64
	}{{"init in MB", total / 1e6, 0.1}, {"size in MB", float64(info.Size()) / 1e6, 0.5}} {
		if bound := bounds[figure.name]; *update {
			got = append([]string{fmt.Sprintf("%s at most %.1f", figure.name, math.Ceil(figure.got/figure.step)*figure.step)}, got...)
		} else if figure.got > bound || figure.got < bound-2*figure.step {
			t.Errorf("%s: %s is %.2f, want at most %.1f, and not much less", file, figure.name, figure.got, bound)
		}
	}
	if *update {
		write(t, file, got)
		return
	}
	compare(t, file, packages, got)
}

// TestImporter weighs what a program gets that decodes one type of mcptypes, beside encoding/json: a program that only
// imports that package gets 12 kB with Go 1.26, and 246 kB with Go 1.27.
func TestImporter(t *testing.T) {
	root(t)
	const most = 200_000
	size := func(program string) int64 {
		bin := filepath.Join(t.TempDir(), program)
		must.OK(t, gobuild.Program(bin, "./mcptypes/testdata/programs/"+program))
		info := must.Get(os.Stat(bin))(t)
		return info.Size()
	}
	if more := size("decode") - size("print"); more > most {
		t.Errorf("Decode adds %d bytes to a program, more than %d", more, most)
	}
}
