package hoststest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// Registry returns a handler that is a registry of npm. It has packages with their package.json, by name, of version
// 1.0.0.
func Registry(t testing.TB, packages map[string]map[string]any) http.Handler {
	t.Helper()
	files := map[string][]byte{}
	for name, about := range packages {
		about["name"], about["version"] = name, "1.0.0"
		text := must.Get(json.Marshal(about))(t)
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		must.OK(t, w.WriteHeader(&tar.Header{Name: "package/package.json", Mode: 0o644, Size: int64(len(text))}))
		must.Get(w.Write(text))(t)
		must.OK(t, w.Close(), z.Close())
		archive := "/" + name + "/-/" + name + "-1.0.0.tgz"
		sum := sha512.Sum512(b.Bytes())
		about["dist"] = map[string]any{"tarball": "https://registry.example.com" + archive, "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
		files[archive] = b.Bytes()
		files["/"+name] = must.Get(json.Marshal(map[string]any{
			"name": name, "dist-tags": map[string]any{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": about},
		}))(t)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, is := files[r.URL.Path]
		if !is {
			http.NotFound(w, r)
			return
		}
		if !strings.HasSuffix(r.URL.Path, ".tgz") {
			w.Header().Set("Content-Type", "application/json")
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(file)))
		_, _ = w.Write(file)
	})
}
