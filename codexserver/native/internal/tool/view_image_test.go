package tool_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

func TestViewImage(t *testing.T) {
	dir := t.TempDir()
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"a": png, "b.png": []byte("no image"), "c.txt": []byte("text")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for path, wantURL := range map[string]string{
		"a": "data:image/png;base64,iVBOR", "b.png": "data:image/png;base64,", filepath.Join(dir, "a"): "data:image/png;base64,iVBOR",
		"c.txt": "", "missing.png": "", ".": "",
	} {
		turn, h := begin(t, dir)
		arguments, _ := json.Marshal(map[string]string{"path": path})
		res := called(t, turn, tool.Call{ID: "c1", Name: "view_image", Arguments: string(arguments)})
		if wantURL == "" {
			if len(res.Items) > 0 || len(h.all) > 0 || !strings.HasPrefix(res.Output, "the image cannot be shown: ") {
				t.Errorf("%s: %+v, events %v", path, res, h.all)
			}
			continue
		}
		if len(res.Items) != 1 || len(h.all) != 1 || res.Output != "attached local image path" {
			t.Errorf("%s: %+v, events %v", path, res, h.all)
			continue
		}
		if m, ok := res.Items[0].(protocol.MessageItem); !ok || !strings.HasPrefix(m.Content[0].ImageURL, wantURL) {
			t.Errorf("%s: %+v", path, res.Items[0])
		}
	}
}
