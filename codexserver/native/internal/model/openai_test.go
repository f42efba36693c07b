package model_test

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestAsOpenAIReads reads the streams of scripted turns as OpenAI's Go library does. The module test/interop reads
// them with the library, and checks the file.
func TestAsOpenAIReads(t *testing.T) {
	text, err := os.ReadFile("testdata/openai-go.json")
	if err != nil {
		t.Fatal(err)
	}
	type call struct{ ID, Name, Arguments string }
	type read struct {
		Text, Reasoning string
		Calls           []call
		Usage           protocol.TokenUsage
		Failed          bool
	}
	var rows map[string]struct {
		Wire config.WireAPI
		Turn providertest.Turn
		Want read
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < 16 {
		t.Errorf("only %d turns", len(rows))
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			p := providertest.New(row.Turn)
			defer p.Close()
			c := &model.Client{
				Provider: config.Provider{BaseURL: p.BaseURL(), WireAPI: row.Wire},
				HTTP:     http.DefaultClient, Getenv: func(string) string { return "" }, MaxBytes: 1 << 20,
			}
			var got read
			resp, err := c.Stream(t.Context(), &model.Request{Model: "m"}, func(protocol.EventMsg) {})
			if err != nil {
				got.Failed = true
			} else {
				if resp.Usage != nil {
					got.Usage = *resp.Usage
				}
				for _, item := range resp.Items {
					switch item := item.(type) {
					case protocol.MessageItem:
						for _, part := range item.Content {
							got.Text += part.Text
						}
					case protocol.ReasoningItem:
						for _, part := range item.Summary {
							got.Reasoning += part.Text
						}
					case protocol.FunctionCallItem:
						got.Calls = append(got.Calls, call{item.CallID, item.Name, item.Arguments})
					}
				}
			}
			if d := cmp.Diff(row.Want, got); d != "" {
				t.Errorf("(-openai-go +ours):\n%s", d)
			}
		})
	}
}
