package model_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
)

// TestErrorsOfProviders reads what providers answer when the context is full, and what
// resembles it. Each row of the file names its source.
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
		Want             string // "full", "refused" or "retry"
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	none := int64(0)
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
			c := client(&answers{all: []answer{a}}, config.Provider{WireAPI: wire, RequestMaxRetries: &none})
			_, err := c.Stream(t.Context(), &model.Request{}, func(model.Event) {})
			got := "refused"
			if _, again := model.Retryable(err); again {
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
