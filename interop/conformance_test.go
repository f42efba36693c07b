package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// asClient makes the test program the client that the suite starts.
const asClient = "INTEROP_AS_CONFORMANCE_CLIENT"

// suite is a release of the conformance suite, by its folder.
type suite string

const (
	released suite = "@modelcontextprotocol/conformance"
	newestOf suite = "conformance-newest"
)

// TestConformance has the official suite test over HTTP: codex-mcp itself, a server with
// every feature that the suite asks for, and a client of package jsonrpc.
func TestConformance(t *testing.T) {
	suites := []suite{newestOf, released}
	t.Parallel()
	urls := map[subject]string{featured: serveFeatures(t), itself: withToken(t, serveHTTP(t, ours(t), newHome(t, silentModel(t), "chat"), "-engine", "native"))}
	seen := &verdicts{outcomes: map[column]map[string]outcome{}}
	for _, s := range suites {
		seen.releases = append(seen.releases, npmRelease(t, string(s)))
		for _, name := range s.scenarios(t, "server") {
			if !slices.Contains(seen.scenarios, name) {
				seen.scenarios = append(seen.scenarios, name)
			}
		}
	}
	t.Run("servers", func(t *testing.T) {
		for on, url := range urls {
			t.Run(string(on), func(t *testing.T) {
				t.Parallel()
				for _, s := range suites {
					results := t.TempDir()
					// What does not apply fails, so its exit status says nothing.
					_, _ = s.run(t, "server", "--url", url, "--suite", "all", "--output-dir", results)
					seen.put(column{s, on}, read(t, results, "server-", s.scenarios(t, "server")))
				}
			})
		}
	})
	var b bytes.Buffer
	seen.write(t, &b, suites)
	testClient(t, &b)
	compareDocument(t, "conformance", b.String())
}

// notOurs are the scenarios, or with a final * the groups of them, that test what the
// client does not claim.
var notOurs = map[string]string{
	"sse-retry":                           "tests how a client's HTTP streams are taken up again; the packages have no HTTP client",
	"elicitation-sep1034-client-defaults": "tests how a client fills in forms; the packages ask, they show no forms",
	"auth/*":                              "test authorization, which belongs to HTTP",
}

// testClient has the released suite test the client, and writes a table.
func testClient(t *testing.T, b *bytes.Buffer) {
	results := t.TempDir()
	fmt.Fprintf(b, "\nA client, by %s:\n\n| scenario | outcome |\n|---|---|\n", npmRelease(t, string(released)))
	groups := map[string]bool{}
	for _, scenario := range released.scenarios(t, "client") {
		if group, why := notApplicable(scenario); why != "" {
			if !groups[group] {
				fmt.Fprintf(b, "| %s | – %s |\n", group, why)
			}
			groups[group] = true
			continue
		}
		if out, err := released.run(t, "client", "--command", os.Args[0], "--scenario", scenario, "--output-dir", results); err != nil {
			t.Errorf("client: %v\n%s", err, out)
		}
		what := read(t, results, "", []string{scenario})[scenario]
		if len(what.failed) > 0 || what.passed == 0 {
			t.Errorf("client, %s: %+v", scenario, what)
		}
		fmt.Fprintf(b, "| %s | passed |\n", scenario)
	}
	for group := range notOurs {
		if !groups[group] {
			t.Errorf("the suite has no scenario %s", group)
		}
	}
}

// notApplicable returns the row of notOurs that a scenario belongs to, or "".
func notApplicable(scenario string) (group, why string) {
	for group, why := range notOurs {
		prefix, isPrefix := strings.CutSuffix(group, "*")
		if scenario == group || isPrefix && strings.HasPrefix(scenario, prefix) {
			return group, why
		}
	}
	return "", ""
}

// run runs the suite and returns what it printed.
func (s suite) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	program := installed(filepath.FromSlash(string(s)), "dist", "index.js")
	cmd := exec.CommandContext(ctx, node(), append([]string{program}, args...)...)
	cmd.Env = append(os.Environ(), asClient+"=1") // of the clients that it starts
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// scenarios returns those that the suite has for a side, as it lists them:
// "  - ping [2025-06-18,2025-11-25]".
func (s suite) scenarios(t *testing.T, side string) (names []string) {
	t.Helper()
	list, err := s.run(t, "list", "--"+side)
	if err != nil {
		t.Fatalf("list: %v\n%s", err, list)
	}
	for line := range strings.Lines(list) {
		if name, ok := strings.CutPrefix(line, "  - "); ok {
			name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("the suite lists no scenarios for a %s", side)
	}
	return names
}

// outcome is what the suite found in a scenario.
type outcome struct {
	passed int
	failed []string // the ids of the checks, sorted
	why    []string // what it said of them
}

// read reads what the suite wrote about scenarios.
func read(t *testing.T, results, prefix string, scenarios []string) map[string]outcome {
	t.Helper()
	all := map[string]outcome{}
	for _, scenario := range scenarios {
		files, err := filepath.Glob(filepath.Join(results, prefix+scenario+"-[0-9]*T*", "checks.json"))
		if err != nil || len(files) != 1 {
			t.Errorf("%s: results in %q, %v", scenario, files, err)
			continue
		}
		raw, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(raw, &checks); err != nil {
			t.Fatalf("%s: %v", files[0], err)
		}
		var o outcome
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				o.passed++
			case "INFO", "SKIPPED": // judge nothing
			default:
				o.failed = append(o.failed, c.ID)
				o.why = append(o.why, c.ID+": "+c.Status+": "+c.ErrorMessage)
			}
		}
		slices.Sort(o.failed)
		o.failed = slices.Compact(o.failed)
		all[scenario] = o
	}
	return all
}
