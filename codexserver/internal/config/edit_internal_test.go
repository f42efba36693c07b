package config

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// comments returns the comments of a document, sorted.
func comments(t *testing.T, doc []byte) (found []string) {
	p := unstable.Parser{KeepComments: true}
	p.Reset(doc)
	var walk func(n *unstable.Node)
	walk = func(n *unstable.Node) {
		for ; n.Valid(); n = n.Next() {
			if n.Kind == unstable.Comment {
				found = append(found, string(n.Data))
			}
			walk(n.Child())
		}
	}
	for p.NextExpression() {
		walk(p.Expression())
	}
	if p.Error() != nil {
		t.Fatalf("%q: %v", doc, p.Error())
	}
	slices.Sort(found) // the parser nests comments in arrays
	return found
}

// FuzzEdit checks that an edit either changes one key and keeps every comment, or fails.
func FuzzEdit(f *testing.F) {
	for _, doc := range []string{
		"", "# c\nmodel = \"a\" # d\n[t]\n", "profiles.p.model = 1\n", "profiles = { p = { model = \"x\", a = 1 } } # c", "[profiles.p]\r\nx = [1, # c\r\n2]\r\n",
		"[[profiles]]\nmodel = 1\n", "[profiles]\np.x = 1\n[profiles.p.sub]\n", "profiles.p = { # c\n a = 1, # d\n model = 2, # e\n}\n", "[a]\n[profiles.q]\n", "model = '''\n#\n'''\n#",
		"x = nan\ny = 1979-05-27\n", "\"pro\\u0066iles\".\"p\" = {}\n",
	} {
		f.Add([]byte(doc), "p", "m", true)
		f.Add([]byte(doc), "", "m", false)
	}
	f.Fuzz(func(t *testing.T, doc []byte, profile, value string, set bool) {
		var before, after map[string]any
		if toml.Unmarshal(doc, &before) != nil || len(doc) > 10_000 {
			return
		}
		var table []string
		if profile != "" {
			table = []string{"profiles", profile}
		}
		var v *string
		if set {
			v = &value
		}
		out, err := edit(doc, table, "model", v)
		if err != nil {
			return
		}
		if err := toml.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q became %q: %v", doc, out, err)
		}
		if before == nil {
			before = map[string]any{}
		}
		if err := put(before, table, "model", v); err != nil {
			t.Fatalf("%q was changed: %v", doc, err)
		}
		if len(before)+len(after) > 0 && !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", doc, out)
		}
		if diff := cmp.Diff(comments(t, doc), comments(t, out)); diff != "" {
			t.Fatalf("%q became %q: comments (-want +got)\n%s", doc, out, diff)
		}
		if again, err := edit(out, table, "model", v); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q became %q, and then %q, %v", doc, out, again, err)
		}
	})
}
