package model_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestErrorsOfProviders reads what providers answer when the context is full or the model takes
// no images, and what resembles it. Each row of the file names its source.
func TestErrorsOfProviders(t *testing.T) {
	text, err := os.ReadFile("testdata/errors.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Provider, Source string
		Status           int    // of an answer with the body
		Body             string // or
		Stream           string // an event of a stream
		Want             string // "full", "images", "refused" or "retry"
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		for _, wire := range []config.WireAPI{config.WireChat, config.WireResponses} {
			a := answer{status: row.Status, body: row.Body}
			if row.Stream != "" {
				a.body = sse(row.Stream)
				if wire == config.WireResponses {
					var e struct{ Error json.RawMessage }
					if err := json.Unmarshal([]byte(row.Stream), &e); err != nil {
						t.Fatal(err)
					}
					a.body = sse(`{"type":"error","error":` + string(e.Error) + `}`)
				}
			}
			provider := &answers{all: []answer{a, {body: sse(`{"type":"response.completed"}`, chatDone)}}}
			c := client(provider, config.Provider{WireAPI: wire})
			req := &model.Request{Model: "m", Items: []protocol.ResponseItem{protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{
				{Type: "input_text", Text: "look"}, {Type: "input_image", ImageURL: "data:picture"},
			}}}}
			told := 0
			stream := func() error {
				_, err := c.Stream(t.Context(), req, func(e protocol.EventMsg) {
					if _, ok := e.(protocol.BackgroundEvent); ok {
						told++
					}
				})
				return err
			}
			err := stream()
			got := "refused"
			if err == nil { // the next request has no images either
				err = stream()
				got = "images"
				for i, body := range provider.bodies {
					if i > 0 == strings.Contains(body, "data:picture") || i > 0 && !strings.Contains(body, "cannot take images") {
						t.Errorf("request %d: %s", i, body)
					}
				}
				if len(provider.bodies) != 3 || told != 1 {
					t.Errorf("%d requests, and told %d times", len(provider.bodies), told)
				}
			}
			if again := retryable(err); again {
				got = "retry"
			}
			if errors.Is(err, model.ErrContextWindow) {
				got = "full"
			}
			if got != row.Want {
				t.Errorf("%s (%s) on the wire %s: %s, want %s: %v", row.Provider, row.Source, wire, got, row.Want, err)
			}
		}
	}
}
