package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestDocsKeys compares the keys of Codex on docs/reference/configuration.md with those that are read.
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
	theirs := section("## config.toml, as the native engine reads it")

	compare(t, "model_providers.NAME", keys("", reflect.TypeFor[Provider]()), rows(section("### Providers")))
	compare(t, "mcp_servers.NAME", keys("", reflect.TypeFor[MCPServer]()), rows(section("### MCP servers")))
	want := append(keys("", reflect.TypeFor[Config]()), "profile", "profiles.NAME")
	compare(t, "config.toml", want, rows(theirs))

}

// TestSettingsPage makes the part of the page that lists our keys, and reads its block of defaults.
func TestSettingsPage(t *testing.T) {
	const page, begin, end = "../../../docs/reference/configuration.md", "<!-- made from codexserver/internal/config/keys.go -->\n", "<!-- end -->\n"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(b), begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatal("the page has no place for the keys")
	}
	block, made := pageOf(new(Settings).keys())
	if want := before + begin + made + end + after; *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("the page (-program +page), which -update makes:\n%s", diff)
	}
	home := t.TempDir()
	defaults, _, err := LoadSettings(home, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, SettingsFile), []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	read, _, err := LoadSettings(home, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &defaults.Approvals // unset, they mean what the page says
	a.OnUnsupported, a.OnError, a.OnTimeout, a.OnCancel, a.Schema, a.Timeout = "deny", "deny", "deny", "abort", "empty", elicit.DefaultTimeout
	if diff := cmp.Diff(defaults, read, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the defaults (-program +page):\n%s", diff)
	}
}

// pageOf returns the block with the defaults, and that with the table of meanings.
func pageOf(keys []key) (block, page string) {
	var defaults, meanings strings.Builder
	table, names := "", []string(nil)
	for _, k := range keys {
		names = append(names, "`"+k.name+"`")
		if k.meaning != "" {
			fmt.Fprintf(&meanings, "| %s | %s |\n", strings.Join(names, ", "), k.meaning)
			names = nil
		}
		v := k.initial
		if v == nil {
			v = k.shown
		}
		if v == nil {
			continue
		}
		in, name, is := strings.Cut(k.name, ".")
		if !is {
			in, name = "", k.name
		}
		if in != table {
			fmt.Fprintf(&defaults, "\n[%s]\n", in)
			table = in
		}
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&defaults, "%s = %s\n", name, strings.ReplaceAll(string(text), `","`, `", "`))
	}
	return defaults.String(), "```toml\n" + defaults.String() + "```\n\n| key | meaning |\n|---|---|\n" + meanings.String()
}

var update = flag.Bool("update", false, "make the list of keys on the page")

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
