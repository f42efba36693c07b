package config

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

type decoded struct {
	After    Duration          `json:"after"`
	Text     string            `json:"text"`
	Yes      *bool             `json:"yes"`
	Count    int               `json:"count"`
	Limit    *int64            `json:"limit"`
	Seconds  float64           `json:"seconds"`
	Any      any               `json:"any"`
	List     [][]string        `json:"list"`
	Texts    map[string]string `json:"texts"`
	Parts    map[string]part   `json:"parts"`
	Part     part              `json:"part"`
	Patience Patience          `json:"patience"`
	Hidden   string            `json:"-"`
}

type part struct {
	Name string `json:"name"`
}

// TestDecode decodes each document as package json does, over what is there, and values as programs write them.
func TestDecode(t *testing.T) {
	type word string
	var got decoded
	err := decode(layer{"text": word("a"), "limit": uint8(7), "seconds": int32(2), "list": [][]word{{"b"}}, "texts": map[word]word{"c": "d"}}, &got)
	want := decoded{Text: "a", Limit: new(int64(7)), Seconds: 2, List: [][]string{{"b"}}, Texts: map[string]string{"c": "d"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, doc := range []string{
		`{}`,
		`{"text":"a","yes":false,"count":-7,"limit":9007199254740992,"seconds":1.5,"any":{"a":["b",true]}}`,
		`{"count":2,"seconds":3}`,
		`{"list":[["a","b"],[]],"texts":{"a":"b"},"parts":{"a":{"name":"b"},"c":{}},"part":{"name":"d"}}`,
		`{"list":[],"texts":{},"parts":{}}`,
		`{"text":null,"yes":null,"list":null,"texts":{"a":null},"parts":null,"part":null,"any":null}`,
		`{"after":"90s","patience":45}`,
		`{"other":1,"Hidden":"a","-":"b","Text":"c","":"d"}`,
	} {
		var from layer
		must.OK(t, json.Unmarshal([]byte(doc), &from))
		before := func() decoded {
			return decoded{Text: "before", List: [][]string{{"before"}}, Texts: map[string]string{"before": "x"}, Part: part{"before"}, Hidden: "before"}
		}
		got, want := before(), before()
		if err := decode(from, &got); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
		must.OK(t, json.Unmarshal([]byte(doc), &want))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-json +got)\n%s", doc, diff)
		}
	}
}

// TestDecodeErrors names the key, and says what it should be.
func TestDecodeErrors(t *testing.T) {
	for _, tt := range []struct {
		from layer
		want string
	}{
		{layer{"text": 1.5}, "text: want a string, have a number"},
		{layer{"text": "a\xff"}, "text: invalid UTF-8"},
		{layer{"yes": "a"}, "yes: want a boolean, have a string"},
		{layer{"count": 1.5}, "count: want an integer, have a number"},
		{layer{"count": 1e19}, "count: want an integer, have a number"},
		{layer{"limit": uint64(math.MaxUint64)}, "limit: want an integer, have a number"},
		{layer{"seconds": math.Inf(1)}, "seconds: unsupported value: +Inf"},
		{layer{"count": math.NaN()}, "count: unsupported value: NaN"},
		{layer{"list": []any{[]any{"a", true}}}, "list.0.1: want a string, have a boolean"},
		{layer{"list": layer{}}, "list: want an array, have a table"},
		{layer{"parts": layer{"b": layer{"name": 1}, "a c": layer{"name": 1}}}, `parts."a c".name: want a string, have a number`},
		{layer{"part": []any{}}, "part: want a table, have an array"},
		{layer{"after": true}, `after: want a duration such as "90s" or "10m", or a number of seconds`},
		{layer{"patience": "0.5s"}, `patience: want "auto", 0, or a second or more: 45 or "45s"`},
		{layer{"part": layer{"nmae": 1}}, "part.nmae: unknown key; do you mean name?"},
		{layer{"parts": layer{"a": layer{"zzzzzz": 1}}}, "parts.a.zzzzzz: unknown key"},
		{layer{"Hidden": "a"}, "Hidden: unknown key"},
	} {
		if err := decodeKnown(nil, tt.from, reflect.ValueOf(&decoded{}).Elem()); err == nil || err.Error() != tt.want {
			t.Errorf("%v: error %v, want %q", tt.from, err, tt.want)
		}
	}
}

// TestDocsKeys compares the keys of Codex on docs/configuration.md with those that are read.
func TestDocsKeys(t *testing.T) {
	b := must.Get(os.ReadFile("../../../docs/configuration.md"))(t)
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
	const page, begin, end = "../../../docs/configuration.md", "<!-- made from codexserver/internal/config/keys.go -->\n", "<!-- end -->\n"
	b := must.Get(os.ReadFile(page))(t)
	before, rest, _ := strings.Cut(string(b), begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatal("the page has no place for the keys")
	}
	block, made := pageOf(new(Settings).keys())
	if want := before + begin + made + end + after; *update {
		must.OK(t, os.WriteFile(page, []byte(want), 0o644))
	} else if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("the page (-program +page), which -update makes:\n%s", diff)
	}
	home := t.TempDir()
	defaults, _, err := LoadSettings(home, nil)
	must.OK(t, err)
	must.OK(t, os.WriteFile(filepath.Join(home, SettingsFile), []byte(block), 0o600))
	read, _, err := LoadSettings(home, nil)
	must.OK(t, err)
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
		if by, is := v.(unset); is {
			v = by.means
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

// TestHostileKeys checks that the table of hostile calls has each key that a call may set.
func TestHostileKeys(t *testing.T) {
	for key := range strings.FieldsSeq(callScalars + callMembers + callTables) {
		if !servertest.HostileArgument(key[strings.LastIndex(key, ".")+1:]) {
			t.Errorf("no hostile call has the key %s", key)
		}
	}
}

// TestKeysOfCodex checks that no key which Codex has counts as a misspelt one.
func TestKeysOfCodex(t *testing.T) {
	for _, table := range []layer{{}, {"profiles": layer{"x": layer{}}}} {
		keys := table
		if profiles, is := table["profiles"].(layer); is {
			keys = profiles["x"].(layer)
		}
		for _, key := range known(reflect.TypeFor[Config](), true) {
			if keys[key] == nil {
				keys[key] = 1
			}
		}
		must.OK(t, guarded(table, false))
		must.OK(t, guarded(table, true))
	}
}
