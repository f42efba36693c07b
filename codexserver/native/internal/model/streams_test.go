package model_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
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
	must(t, err)
	var rows []struct {
		Provider, What, Source string
		Wire                   config.WireAPI
		Lines                  []string
		Want                   struct {
			streamed
			Usage *struct{ Input, Output, Total, Cached, Reasoning int64 }
		}
	}
	must(t, json.Unmarshal(file, &rows))
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
			diff(t, row.Source, want, got)
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

// TestAsOpenAIReads reads the streams of scripted turns as OpenAI's Go library does. The module test/interop reads
// them with the library, and checks the file.
func TestAsOpenAIReads(t *testing.T) {
	text, err := os.ReadFile("testdata/openai-go.json")
	must(t, err)
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
	must(t, json.Unmarshal(text, &rows))
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
			diff(t, "as openai-go reads it", row.Want, got)
		})
	}
}

// TestErrorsOfProviders reads what providers answer when the context is full or the model takes
// no images, and what resembles it. Each row of the file names its source.
func TestErrorsOfProviders(t *testing.T) {
	text, err := os.ReadFile("testdata/errors.json")
	must(t, err)
	var rows []struct {
		Provider, Source string
		Status           int    // of an answer with the body
		Body             string // or
		Stream           string // an event of a stream
		Want             string // "full", "images", "refused" or "retry"
	}
	must(t, json.Unmarshal(text, &rows))
	for _, row := range rows {
		for _, wire := range []config.WireAPI{config.WireChat, config.WireResponses} {
			a := answer{status: row.Status, body: row.Body}
			if row.Stream != "" {
				a.body = sse(row.Stream)
				if wire == config.WireResponses {
					var e struct{ Error json.RawMessage }
					must(t, json.Unmarshal([]byte(row.Stream), &e))
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
