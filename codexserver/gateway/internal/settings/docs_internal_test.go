package settings

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestDocsKeys compares the tables of keys in codexserver/gateway/README.md with the real keys.
func TestDocsKeys(t *testing.T) {
	page := must.Get(os.ReadFile("../../README.md"))(t)
	_, section, _ := strings.Cut(string(page), "\n## Keys\n")
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`|]*)` \\|").FindAllStringSubmatch(section, -1) {
		got = append(got, row[1])
	}
	want := append(keys("http.", reflect.TypeFor[httpTable]()), keys("", reflect.TypeFor[Principal]())...)
	want = append(want, keys("", reflect.TypeFor[Service]())...)
	want = slices.DeleteFunc(want, func(key string) bool { // docs/configuration.md has them
		return slices.Contains([]string{"http.unlocked_arguments", "http.hosts", "http.origins", "http.drain_timeout"}, key)
	})
	slices.Sort(got)
	slices.Sort(want)
	must.Equal(t, "the keys of the page", want, got)
}

// keys returns the dotted keys of a table. A map of tables is one key with NAME.
func keys(prefix string, table reflect.Type) (all []string) {
	for field := range table.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch field.Type.Kind() {
		case reflect.Struct:
			all = append(all, keys(prefix+name+".", field.Type)...)
		case reflect.Map:
			all = append(all, prefix+name+".NAME")
		default:
			all = append(all, prefix+name)
		}
	}
	return all
}

// TestDocsService reads the configurations of a service in codexserver/gateway/README.md.
func TestDocsService(t *testing.T) {
	page := must.Get(os.ReadFile("../../README.md"))(t)
	blocks := regexp.MustCompile("(?ms)^```toml\n(\\[nats\\].*?)^```$").FindAllSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Error("the page has no configuration")
	}
	for _, block := range blocks {
		home := t.TempDir()
		must.OK(t, os.WriteFile(filepath.Join(home, ServiceFile), block[1], 0o600))
		if s, err := LoadService(home); err != nil || s.NATS.URL == "" {
			t.Errorf("%v, %+v in\n%s", err, s, block[1])
		}
	}
}
