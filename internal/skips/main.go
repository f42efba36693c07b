// Command skips reads what go test -json prints, and prints it as go test does, with a line
// for each test that was skipped, and why:
//
//	go test -json ./... | go run ./internal/skips
//
// With CI=true in the environment the skipped tests must be those that list.txt has for this
// system, of the tests that ran, because in CI a skipped test looks like one that passed. An
// argument names another system, on which the tests ran, such as windows.
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// list has a line for each test that CI skips: the system, the package and the test.
//
//go:embed list.txt
var list string

func main() {
	release, _ := os.ReadFile("/etc/os-release") // only Linux has the file
	of := system(runtime.GOOS, string(release))
	if len(os.Args) > 1 {
		of = os.Args[1]
	}
	if err := check(os.Stdin, os.Stdout, os.Getenv("CI") == "true", of); err != nil {
		fmt.Fprintln(os.Stderr, "skips:", err)
		os.Exit(1)
	}
}

// check reads events and prints what they say. In CI the tests that were skipped must be those of the list.
func check(events io.Reader, out io.Writer, ci bool, system string) error {
	r, err := read(events, out)
	if err != nil || !ci {
		return err
	}
	return r.compare(list, system)
}

// system returns the name that list.txt has for a system: that of a Linux distribution, or
// GOOS.
func system(goos, release string) string {
	for line := range strings.Lines(release) {
		if id, ok := strings.CutPrefix(line, "ID="); ok && goos == "linux" {
			return strings.Trim(id, "\"\n")
		}
	}
	return goos
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
}

// result has the tests that ran, and those of them that were skipped, each as package and test.
type result struct{ ran, skipped map[string]bool }

const module = "github.com/codexmcp/codexmcp/"

// read prints the events: the output of packages and of tests that do not pass.
func read(in io.Reader, out io.Writer) (*result, error) {
	r := &result{map[string]bool{}, map[string]bool{}}
	output := map[string]string{} // by package and test
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return r, nil
		}
		var e event
		if err == nil {
			err = json.Unmarshal([]byte(line), &e)
		}
		if err != nil {
			return nil, err
		}
		pkg := strings.TrimPrefix(e.Package, module)
		name := pkg + " " + e.Test
		r.ran[name] = true
		if e.Test == "" && e.Action == "fail" { // also of tests that did not end
			for _, of := range slices.Sorted(maps.Keys(output)) {
				if strings.HasPrefix(of, name) {
					fmt.Fprint(out, output[of])
					delete(output, of)
				}
			}
		}
		switch {
		case e.Test == "" && e.Output == "PASS\n": // go test prints it only with -v
		case e.Test == "" || e.Action == "fail":
			fmt.Fprint(out, output[name], e.Output)
		case e.Action == "output":
			output[name] += e.Output
		case e.Action == "skip":
			r.skipped[name] = true
			fmt.Fprintf(out, "skipped %s: %s\n", name, reason(output[name]))
		}
		if slices.Contains([]string{"pass", "fail", "skip"}, e.Action) {
			delete(output, name)
		}
	}
}

// reason returns what a test said before it was skipped, without the frame of go test.
func reason(output string) string {
	var all []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			all = append(all, line)
		}
	}
	return strings.Join(all, " ")
}

// compare compares the skipped tests with those of a list for a system.
func (r *result) compare(list, system string) error {
	want := map[string]bool{}
	for line := range strings.Lines(list) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), system+" ")
		if ok && r.ran[name] {
			want[name] = true
		}
	}
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(r.skipped)) {
		if !want[name] {
			faults = append(faults, "\n"+name+" was skipped")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !r.skipped[name] {
			faults = append(faults, "\n"+name+" was not skipped")
		}
	}
	if faults == nil {
		return nil
	}
	return fmt.Errorf("internal/skips/list.txt has other tests for %s:%s", system, strings.Join(faults, ""))
}
