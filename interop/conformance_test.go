package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// asClient makes the test program the client that the suite starts.
const asClient = "INTEROP_AS_CONFORMANCE_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(asClient) == "" {
		os.Exit(m.Run())
	}
	if err := conformanceClient(context.Background(), os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// notOurs are the scenarios, or with a final * the groups of them, that test
// what the packages do not claim.
var notOurs = map[string]string{
	"server-sse-polling":                  "tests how a server's HTTP streams are taken up again; the packages have no HTTP",
	"dns-rebinding-protection":            "tests an HTTP server's checks of its headers; the packages have no HTTP",
	"sse-retry":                           "tests how a client's HTTP streams are taken up again; the packages have no HTTP",
	"elicitation-sep1034-client-defaults": "tests how a client fills in forms; the packages ask, they show no forms",
	"auth/*":                              "test authorization, which belongs to HTTP",
}

// TestConformance lets the official suite test a server and a client that are
// made of packages jsonrpc, mcptypes and elicit.
func TestConformance(t *testing.T) {
	release := npmRelease(t, "@modelcontextprotocol/conformance")
	server := &httpServer{t: t, sessions: map[string]*httpSession{}}
	listener := httptest.NewServer(server)
	defer server.close()
	defer listener.Close()

	results := t.TempDir()
	// What does not apply fails, so its exit status tells nothing.
	_, _ = conformance(t, "server", "--url", listener.URL, "--suite", "all", "--output-dir", results)
	t.Setenv(asClient, "1")
	for _, scenario := range scenarios(t, "client") {
		if _, why := notApplicable(scenario); why == "" {
			if out, err := conformance(t, "client", "--command", os.Args[0], "--scenario", scenario, "--output-dir", results); err != nil {
				t.Errorf("client: %v\n%s", err, out)
			}
		}
	}

	var b bytes.Buffer
	fmt.Fprintf(&b, "%s:\n\n| tests a | scenario | outcome |\n|---|---|---|\n", release)
	groups := map[string]int{}
	for _, side := range []string{"server", "client"} {
		for _, scenario := range scenarios(t, side) {
			if group, why := notApplicable(scenario); why != "" {
				if groups[group]++; groups[group] == 1 {
					fmt.Fprintf(&b, "| %s | %s | – %s |\n", side, group, why)
				}
				continue
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", side, scenario, outcome(t, results, side, scenario))
		}
	}
	for group := range notOurs {
		if groups[group] == 0 {
			t.Errorf("the suite has no scenario %s", group)
		}
	}
	compareDocument(t, "conformance", b.String())
}

// notApplicable finds the row of notOurs that a scenario belongs to.
func notApplicable(scenario string) (group, why string) {
	for group, why := range notOurs {
		prefix, isPrefix := strings.CutSuffix(group, "*")
		if scenario == group || isPrefix && strings.HasPrefix(scenario, prefix) {
			return group, why
		}
	}
	return "", ""
}

// conformance runs the suite and returns what it printed.
func conformance(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, node(), append([]string{installed("@modelcontextprotocol", "conformance", "dist", "index.js")}, args...)...).CombinedOutput()
	return string(out), err
}

// scenarios are those that the suite has for a side, as it lists them:
// "  - ping [2025-06-18,2025-11-25]".
func scenarios(t *testing.T, side string) (names []string) {
	t.Helper()
	list, err := conformance(t, "list", "--"+side)
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

// outcome reads what the suite wrote about a scenario.
func outcome(t *testing.T, results, side, scenario string) string {
	t.Helper()
	if side == "server" {
		scenario = "server-" + scenario
	}
	files, err := filepath.Glob(filepath.Join(results, scenario+"-[0-9]*", "checks.json"))
	if err != nil || len(files) != 1 {
		t.Errorf("%s: results in %q, %v", scenario, files, err)
		return "NOT RUN"
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var checks []struct{ Name, Status, ErrorMessage string }
	if err := json.Unmarshal(raw, &checks); err != nil {
		t.Fatalf("%s: %v", files[0], err)
	}
	passed := 0
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "INFO": // tells, judges nothing
		default:
			t.Errorf("%s: %s is a %s: %s", scenario, c.Name, c.Status, c.ErrorMessage)
			return "NO"
		}
	}
	if passed == 0 {
		t.Errorf("%s: nothing was checked", scenario)
		return "NO"
	}
	return "passed"
}

// conformanceClient is the client under test: it initializes, lists the tools,
// and calls the one that adds.
func conformanceClient(ctx context.Context, url string) error {
	client := jsonrpc.NewPeer(&httpClient{url: url, in: make(chan []byte, 16), closed: make(chan struct{})}, nil, nil)
	ended := make(chan error, 1)
	go func() { ended <- client.Run(ctx) }()
	talk := func() error {
		_, err := mcptypes.Initialize.Call(ctx, client, &mcptypes.InitializeRequestParams{
			ProtocolVersion: mcptypes.ProtocolVersion,
			ClientInfo:      mcptypes.Implementation{Name: "conformance", Version: "1"},
		})
		if err != nil {
			return err
		}
		if err := mcptypes.NotificationsInitialized.Notify(ctx, client, nil); err != nil {
			return err
		}
		tools, err := mcptypes.ToolsList.Call(ctx, client, nil)
		if err != nil {
			return err
		}
		for _, tool := range tools.Tools {
			if tool.Name != "add_numbers" {
				continue
			}
			sum, err := mcptypes.ToolsCall.Call(ctx, client, &mcptypes.CallToolRequestParams{Name: tool.Name, Arguments: json.RawMessage(`{"a":2,"b":3}`)})
			if err != nil {
				return err
			}
			if said, ok := sum.Content[0].(*mcptypes.TextContent); !ok || !strings.Contains(said.Text, "5") {
				return fmt.Errorf("2 + 3 is %+v", sum.Content)
			}
		}
		return nil
	}
	return errors.Join(talk(), client.Close(), <-ended)
}
