package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pelletier/go-toml/v2"
)

// TestDocsKeys compares docs/reference/configuration.md with the real keys and defaults.
func TestDocsKeys(t *testing.T) {
	b, err := os.ReadFile("../../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	section := func(title string) string {
		_, rest, ok := strings.Cut(string(b), "\n"+title+"\n")
		if !ok {
			t.Fatalf("no section %q", title)
		}
		text, _, _ := strings.Cut(rest, "\n#")
		return text
	}
	ours, theirs := section("## codex-mcp.toml"), section("## config.toml, as the native engine reads it")

	compare(t, "codex-mcp.toml", keys("", reflect.TypeFor[Settings]()), rows(ours))
	compare(t, "model_providers.NAME", keys("", reflect.TypeFor[Provider]()), rows(section("### Providers")))
	compare(t, "mcp_servers.NAME", keys("", reflect.TypeFor[MCPServer]()), rows(section("### MCP servers")))
	want := append(keys("", reflect.TypeFor[Config]()), "profile", "profiles.NAME")
	compare(t, "config.toml", want, rows(theirs))

	b, err = os.ReadFile("../../../docs/reference/flags.md")
	if err != nil {
		t.Fatal(err)
	}
	_, named, _ := strings.Cut(string(b), "\n## Overrides\n")
	named, _, _ = strings.Cut(named, " are keys of")
	got, tops := []string(nil), keys("", reflect.TypeFor[Settings]())
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(named[strings.LastIndex(named, "```"):], -1) {
		got = append(got, m[1])
	}
	for i := range tops {
		tops[i], _, _ = strings.Cut(tops[i], ".")
	}
	slices.Sort(tops)
	compare(t, "the keys in docs/reference/flags.md", slices.Compact(tops), got)

	block := regexp.MustCompile("(?s)```toml\n(.*?)```").FindStringSubmatch(ours)
	if block == nil {
		t.Fatal("no block with the defaults")
	}
	var shown map[string]any
	if err := toml.Unmarshal([]byte(block[1]), &shown); err != nil {
		t.Fatal(err)
	}
	gateway := []string{"approvals.clients", "approvals.log", "http.metrics", "http.metrics_users", "http.oauth", "http.principals", "http.url", "http.worker_idle"} // an empty table, one that depends on the home, and those whose defaults docs/operate/gateway.md has
	compare(t, "the block of codex-mcp.toml", keys("", reflect.TypeFor[Settings]()), append(leaves("", shown), gateway...))
	home := t.TempDir()
	defaults, _, err := LoadSettings(home, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, SettingsFile), []byte(block[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	read, _, err := LoadSettings(home, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &defaults.Approvals // the page names the defaults of absent settings
	a.OnUnsupported, a.OnError, a.OnTimeout, a.OnCancel, a.Schema = "deny", "deny", "deny", "abort", "empty"
	a.Timeout = elicit.DefaultTimeout
	if diff := cmp.Diff(defaults, read, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the defaults (-program +page):\n%s", diff)
	}
}

func compare(t *testing.T, what string, want, got []string) {
	t.Helper()
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-program +page):\n%s", what, diff)
	}
}

// keys returns the dotted keys of a table. A map of tables is one key with NAME.
func keys(prefix string, table reflect.Type) (all []string) {
	for field := range table.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case field.Anonymous:
			all = append(all, keys(prefix, field.Type)...)
		case field.Type.Kind() == reflect.Struct:
			all = append(all, keys(prefix+name+".", field.Type)...)
		case field.Type.Kind() == reflect.Map && field.Type.Elem().Kind() == reflect.Struct:
			all = append(all, prefix+name+".NAME")
		default:
			all = append(all, prefix+name)
		}
	}
	return all
}

// rows returns the keys in the first column of a text's tables.
func rows(text string) (all []string) {
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(text, -1) {
		for key := range strings.SplitSeq(row[1], ", ") {
			all = append(all, strings.Trim(key, "`"))
		}
	}
	return all
}

func leaves(prefix string, table map[string]any) (all []string) {
	for key, v := range table {
		if sub, ok := v.(map[string]any); ok {
			all = append(all, leaves(prefix+key+".", sub)...)
		} else {
			all = append(all, prefix+key)
		}
	}
	return all
}
