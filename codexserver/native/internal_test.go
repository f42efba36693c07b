package native

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/hosts"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// EndLimits lets the limits of a conversation's providers be over.
func EndLimits(c engine.Conversation) {
	for i := range c.(*conversation).providers.list {
		c.(*conversation).providers.list[i].until = time.Time{}
	}
}

// TestLists has lists that are shown whole, and longer ones.
func TestLists(t *testing.T) {
	for n, want := range map[int]string{0: "", 100: "n99", 101: "and 1 more"} {
		tools := []model.Tool{{Type: webSearchType}}
		for i := range n {
			tools = append(tools, model.Tool{Name: fmt.Sprint("n", i)})
		}
		if got := names(tools); len(got) != n && n <= 100 || n > 0 && got[len(got)-1] != want {
			t.Errorf("%d tools: %q", n, got)
		}
	}
}

// TestResultsOfMCPServers has results as servers send them, and what the model gets.
func TestResultsOfMCPServers(t *testing.T) {
	picture := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("pixel", 9)))
	image := `{"type":"image","mimeType":"image/png","data":"` + picture + `"}`
	for name, tt := range map[string]struct {
		result, want string
		pictures     int
	}{
		"a text":                      {`{"content":[{"type":"text","text":"so"}],"structuredContent":{"a":1}}`, `[{"type":"text","text":"so"}]`, 0},
		"a text and a picture":        {`{"content":[{"type":"text","text":"look"},` + image + `]}`, `[{"type":"text","text":"look"},{"text":"[image, image/png: it follows as a picture]","type":"text"}]`, 1},
		"nine pictures":               {`{"content":[` + strings.Repeat(image+",", 8) + image + `]}`, `[` + strings.Repeat(`{"text":"[image, image/png: it follows as a picture]","type":"text"},`, 8) + `{"text":"[image, image/png, about 45 bytes: left out, because it is no text]","type":"text"}]`, 8},
		"a picture that is none":      {`{"content":[{"type":"image","mimeType":"image/png","data":"?"}]}`, `[{"text":"[image, image/png, about 0 bytes: left out, because it is no text]","type":"text"}]`, 0},
		"a picture with another type": {`{"content":[{"type":"image","mimeType":"text/html","data":"` + picture + `"}]}`, `[{"text":"[image, text/html, about 45 bytes: left out, because it is no text]","type":"text"}]`, 0},
		"a drawing":                   {`{"content":[{"type":"image","mimeType":"image/svg+xml","data":"` + picture + `"}]}`, `[{"text":"[image, image/svg+xml, about 45 bytes: left out, because it is no text]","type":"text"}]`, 0},
		"a sound":                     {`{"content":[{"type":"audio","mimeType":"audio/wav","data":"` + picture + `"}]}`, `[{"text":"[audio, audio/wav, about 45 bytes: left out, because it is no text]","type":"text"}]`, 0},
		"a blob":                      {`{"content":[{"type":"resource","resource":{"uri":"file:///x","mimeType":"application/zip","blob":"` + picture + `"}}]}`, `[{"text":"[resource file:///x, application/zip, about 45 bytes: left out, because it is no text]","type":"text"}]`, 0},
		"a blob that is a picture":    {`{"content":[{"type":"resource","resource":{"uri":"file:///x","mimeType":"image/png","blob":"` + picture + `"}}]}`, `[{"text":"[resource file:///x, image/png: it follows as a picture]","type":"text"}]`, 1},
		"a resource with text":        {`{"content":[{"type":"resource","resource":{"uri":"file:///x","text":"so"}}]}`, `[{"type":"resource","resource":{"uri":"file:///x","text":"so"}}]`, 0},
		"a block of another form":     {`{"content":[{"type":7}, "x"]}`, `[{"type":7},"x"]`, 0},
		"structured, content empty":   {`{"content":[],"structuredContent":{"a": 4711}}`, `{"a":4711}`, 0},
		"structured, content null":    {`{"content":null,"structuredContent":[1]}`, `[1]`, 0},
		"structured alone":            {`{"structuredContent":{"a":1}}`, `{"a":1}`, 0},
		"structured, content blank":   {`{"content":[{"type":"text","text":" "},{"type":"text","text":""}],"structuredContent":{"a":1}}`, `{"a":1}`, 0},
		"an error without words":      {`{"isError":true,"content":[]}`, `tool call error: the tool failed and did not say why`, 0},
		"an error without content":    {`{"isError":true,"content":null}`, `tool call error: the tool failed and did not say why`, 0},
		"an error, blank":             {`{"isError":true,"content":[{"type":"text","text":"\n"}]}`, `tool call error: the tool failed and did not say why`, 0},
		"an error alone":              {`{"isError":true}`, `tool call error: the tool failed and did not say why`, 0},
		"an error, structured":        {`{"isError":true,"content":[],"structuredContent":{"a":1}}`, `tool call error: the tool failed: {"a":1}`, 0},
		"an error with a picture":     {`{"isError":true,"content":[` + image + `]}`, `tool call error: the tool failed: [{"text":"[image, image/png: it follows as a picture]","type":"text"}]`, 1},
		"an error with words":         {`{"isError":true,"content":[{"type":"text","text":"no file"}]}`, `[{"type":"text","text":"no file"}]`, 0},
		"an error that is a text":     {`{"isError":"true","content":[]}`, `[]`, 0},
		"no error, empty":             {`{"isError":false,"content":[]}`, `[]`, 0},
		"structured and a picture":    {`{"content":[` + image + `],"structuredContent":{"a":1}}`, `[{"text":"[image, image/png: it follows as a picture]","type":"text"},{"text":"{\"a\":1}","type":"text"}]`, 1},
		"a long one and a picture":    {`{"content":[` + image + `],"structuredContent":"` + strings.Repeat("x", 16<<10) + `"}`, `[{"text":"[image, image/png: it follows as a picture]","type":"text"}]`, 1},
		"a type that is new":          {`{"content":[{"type":"table","text":"so","data":"` + picture + `"}]}`, `[{"text":"so\n[table, , about 45 bytes: left out, because it is no text]","type":"text"}]`, 0},
		"content empty":               {`{"content":[]}`, `[]`, 0},
		"content empty, null":         {`{"content":[],"structuredContent":null}`, `[]`, 0},
		"content as a text":           {`{"content":"so"}`, `"so"`, 0},
		"neither":                     {`{"other":1}`, `{"other":1}`, 0},
		"a long one":                  {`{"content":[{"type":"text","text":"` + strings.Repeat("x", 300<<10) + `"}]}`, `[{"type":"text","text":"x`, 0},
	} {
		got := resultOf([]byte(tt.result))
		if got.Output != tt.want && (name != "a long one" || !strings.HasPrefix(got.Output, tt.want) || len(got.Output) > maxToolOutput+100) {
			t.Errorf("%s: %.300s\nwant %s", name, got.Output, tt.want)
		}
		must.Equal(t, name, tt.pictures, len(got.Items))
		for _, item := range got.Items {
			if m := item.(protocol.MessageItem); fromUser(m) || m.Content[0].ImageURL != "data:image/png;base64,"+picture {
				t.Errorf("%s: the picture is %+v", name, m)
			}
		}
	}
}

// SetHosts sets how an engine connects commands to hosts.
func SetHosts(e *Engine, p *hosts.Proxy) { e.proxy = p }
