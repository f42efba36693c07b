package model_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// streamed is what a stream of testdata/streams.json contains.
type streamed struct {
	Text, Reasoning string
	Calls           []string // each a name and its arguments
	Usage           *protocol.TokenUsage
	Cut             string
	Error           string // a part of it
	Again           bool   // another attempt may succeed
}

// TestStreamsOfProviders plays streams in the forms of many providers: their reasoning, calls,
// usage and endings. Each row of the file names where its form is from.
func TestStreamsOfProviders(t *testing.T) {
	file, err := os.ReadFile("testdata/streams.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Provider, What, Source string
		Wire                   config.WireAPI
		Lines                  []string
		Want                   struct {
			streamed
			Usage *struct{ Input, Output, Total, Cached, Reasoning int64 }
		}
	}
	if err := json.Unmarshal(file, &rows); err != nil {
		t.Fatal(err)
	}
	providers := map[string]bool{}
	for _, row := range rows {
		providers[row.Provider] = true
		t.Run(row.Provider+" "+row.What, func(t *testing.T) {
			want := row.Want.streamed
			if u := row.Want.Usage; u != nil {
				want.Usage = &protocol.TokenUsage{InputTokens: u.Input, CachedInputTokens: u.Cached, OutputTokens: u.Output, ReasoningOutputTokens: u.Reasoning, TotalTokens: u.Total}
			}
			c := client(&answers{all: []answer{{body: strings.Join(row.Lines, "\n\n") + "\n\n"}}}, config.Provider{WireAPI: row.Wire})
			resp, err := c.Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
			got := streamed{}
			if err != nil {
				if got.Error = err.Error(); strings.Contains(got.Error, want.Error) && want.Error != "" {
					got.Error = want.Error
				}
				got.Again = retryable(err)
			} else {
				got = contents(resp)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", row.Source, d)
			}
		})
	}
	if len(providers) < 10 {
		t.Errorf("the file has only %d providers", len(providers))
	}
}

func contents(r *model.Response) streamed {
	s := streamed{Usage: r.Usage, Cut: string(r.Cut)}
	for _, item := range r.Items {
		switch item := item.(type) {
		case protocol.MessageItem:
			for _, part := range item.Content {
				s.Text += part.Text
			}
		case protocol.ReasoningItem:
			for _, part := range item.Content {
				if part.Type != model.CallSigns {
					s.Reasoning += part.Text
				}
			}
		case protocol.FunctionCallItem:
			s.Calls = append(s.Calls, item.Name+" "+item.Arguments)
		}
	}
	return s
}
