package interop

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// suite is a release of the conformance suite, by its folder. Both are pinned, as the
// newest of their kind.
type suite string

const (
	stable suite = "@modelcontextprotocol/conformance"
	alpha  suite = "conformance-newest"
)

// subject is what a suite tests.
type subject string

const (
	featured subject = "test server"
	itself   subject = "`codex-mcp http`"
	caller   subject = "client"
)

// side is the suite's command, and its name for the scenarios.
func (s subject) side() string {
	if s == caller {
		return "client"
	}
	return "server"
}

// selection is what of a suite runs: all of its scenarios, each in the version of MCP that
// it was written for, or what a version of MCP requires, in that version.
type selection struct {
	suite    suite
	requires string
}

var selections = []selection{{alpha, ""}, {alpha, modern}, {stable, ""}}

func (s selection) title(t *testing.T) string {
	_, version, _ := strings.Cut(npmRelease(t, string(s.suite)), "` ")
	if s.requires != "" {
		version += ", required for " + s.requires
	}
	return version
}

// TestConformance has the official suite test over HTTP: codex-mcp itself, a server with
// every feature that the suite asks for, and a client. Each gap is of a scenario. Without -whole
// the newest release runs, with all scenarios.
func TestConformance(t *testing.T) {
	t.Parallel()
	program := buildCommand(t, "conformanceclient")
	server := withServer(t)
	var mu sync.Mutex
	unused := maps.Clone(gaps)
	t.Run("suites", func(t *testing.T) {
		for _, on := range []subject{featured, itself, caller} {
			for _, s := range selections {
				if !*whole && s != selections[0] {
					continue
				}
				t.Run(string(on)+", "+s.title(t), func(t *testing.T) {
					t.Parallel()
					names, results := s.scenarios(t)[on.side()], t.TempDir()
					prefix, blind := "", []string(nil)
					if on == caller {
						// What does not apply fails, so its exit status says nothing.
						_, _ = s.run(t, "client", "--command", program, "--output-dir", results)
					} else {
						w := watchCalls(t, server(t, on), results)
						out, err := s.run(t, "server", "--url", w.url, "--output-dir", results)
						if on == featured && err != nil {
							t.Errorf("the suite: %v\n%s", err, out)
						}
						prefix, blind = "server-", w.blind(t)
					}
					kinds := map[kind]int{}
					for scenario, o := range read(t, results, prefix, names, blind) {
						key, g := gapOf(on, scenario)
						mu.Lock()
						delete(unused, key)
						mu.Unlock()
						if on == itself && o.blind && g.kind == "" {
							g = unknownCall
						}
						k, fault := o.judge(g)
						if kinds[k]++; fault != "" {
							t.Errorf("%s: %s\n%s", scenario, fault, strings.Join(o.why, "\n"))
						}
					}
					t.Logf("%v", kinds)
				})
			}
		}
	})
	for key := range unused {
		if *whole { // else another release may have it
			t.Errorf("no suite has the scenario %s for the %s", key.scenario, key.on)
		}
	}
}

// withServer returns a function that returns the address of a server. The test server
// announces changes to all who listen, so each column has its own.
func withServer(t *testing.T) func(*testing.T, subject) remote {
	ours := serveHTTP(t, ours(t), newHome(t, silentModel(t), "chat"), "--engine", "native")
	program := buildCommand(t, "conformanceserver")
	return func(t *testing.T, on subject) remote {
		if on == itself {
			return ours
		}
		return serveFeatures(t, program)
	}
}

// run runs the selection and returns what the suite printed.
func (s selection) run(t *testing.T, command string, args ...string) (string, error) {
	t.Helper()
	which := []string{command, "--suite", "all"}
	if s.requires != "" {
		which = []string{command, "--requirements", s.requires}
	}
	return s.suite.run(t, append(which, args...)...)
}

func (s suite) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	program := installed(filepath.FromSlash(string(s)), "dist", "index.js")
	out, err := exec.CommandContext(ctx, node(), append([]string{program}, args...)...).CombinedOutput()
	return string(out), err
}

// scenarios returns those that the selection has for each side, as the suite lists them.
func (s selection) scenarios(t *testing.T) map[string][]string {
	t.Helper()
	args := []string{"list"}
	if s.requires != "" {
		args = append(args, "--requirements", s.requires)
	}
	list, err := s.suite.run(t, args...)
	if err != nil {
		t.Fatalf("list: %v\n%s", err, list)
	}
	names := readList(list)
	if len(names["server"]) == 0 || len(names["client"]) == 0 {
		t.Fatalf("the suite lists no scenarios:\n%s", list)
	}
	return names
}

// readList reads a list of scenarios by their side:
//
//	Server scenarios (test against a server):
//	  - ping [2025-06-18,2025-11-25]
//	Run and reported, but never scored:
//	  extension (16):
//	    - tasks-lifecycle [server]
func readList(list string) map[string][]string {
	names := map[string][]string{}
	side := ""
	for line := range strings.Lines(list) {
		title, isTitle := strings.CutSuffix(strings.TrimSpace(line), ":")
		name, isName := strings.CutPrefix(strings.TrimSpace(line), "- ")
		switch {
		case isName:
			name, of, _ := strings.Cut(name, " ")
			if of = strings.Trim(of, "[]"); of != "client" && of != "server" {
				of = side
			}
			names[of] = append(names[of], name)
		case isTitle:
			side, _, _ = strings.Cut(strings.ToLower(title), " ")
		}
	}
	return names
}

// read reads what the suite wrote about scenarios. In the folders that blind names a call
// found no tool.
func read(t *testing.T, results, prefix string, scenarios, blind []string) map[string]outcome {
	t.Helper()
	all := map[string]outcome{}
	for _, scenario := range scenarios {
		folders, err := filepath.Glob(filepath.Join(results, prefix+scenario+"-[0-9]*T*"))
		if err != nil || len(folders) != 1 {
			t.Errorf("%s: results in %q, %v", scenario, folders, err)
			continue
		}
		raw, err := os.ReadFile(filepath.Join(folders[0], checksFile))
		if err != nil {
			t.Fatal(err)
		}
		var checks []check
		if err := json.Unmarshal(raw, &checks); err != nil {
			t.Fatalf("%s: %v", folders[0], err)
		}
		o := summarize(checks)
		o.blind = slices.Contains(blind, filepath.Base(folders[0]))
		stderr, err := os.ReadFile(filepath.Join(folders[0], "stderr.txt")) // of a client
		if err == nil {
			o.complaint = string(stderr)
		}
		all[scenario] = o
	}
	return all
}
