package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/contrib/gosdk"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serve returns a server whose tool work is always a task.
func serve(tasks *gosdk.Tasks, work gosdk.Work) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	if err := tasks.Install(s); err != nil {
		panic(err) // the methods are not those of the SDK
	}
	mcp.AddTool(s, &mcp.Tool{Name: "work"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		r, err := tasks.Start(ctx, req, work)
		return r, nil, err
	})
	return s
}

// connect connects a client to a server in the same process. A nil caller is a client without tasks.
func connect(t testing.TB, s *mcp.Server, caller *gosdk.Caller, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, o)
	ours, theirs := mcp.NewInMemoryTransports()
	var transport mcp.Transport = ours
	if caller != nil {
		if err := caller.Install(client); err != nil {
			t.Fatal(err)
		}
		transport = gosdk.Transport{Transport: ours}
	}
	if _, err := s.Connect(context.Background(), theirs, nil); err != nil {
		t.Fatal(err)
	}
	session, err := client.Connect(context.Background(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// answering returns a client that answers questions, and counts them.
func answering(r *mcp.ElicitResult, asked *[]string) *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		*asked = append(*asked, req.Params.Message)
		if r == nil {
			return nil, errors.New("the form is broken")
		}
		return r, nil
	}}
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

var schema = map[string]any{
	"type": "object", "required": []string{"name"}, "properties": map[string]any{"name": map[string]any{"type": "string"}},
}

// greet asks for a name.
func greet(ctx context.Context, t *gosdk.Task) (*mcp.CallToolResult, error) {
	t.Say("asking")
	a, err := t.Elicit(ctx, &mcp.ElicitParams{Message: "Who are you?", RequestedSchema: schema})
	if err != nil {
		return nil, err
	}
	return text(fmt.Sprint(a.Action, " ", a.Content["name"])), nil
}

func call(ctx context.Context, s *mcp.ClientSession) string {
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "work"})
	if err != nil {
		return "error: " + err.Error()
	}
	words := ""
	if r.IsError {
		words = "failed: "
	}
	for _, c := range r.Content {
		words += c.(*mcp.TextContent).Text
	}
	return words
}

// A tool of a server asks in its task. The client polls, and its handler answers.
func Example() {
	tasks := gosdk.New(&gosdk.Options{Poll: 10 * time.Millisecond})
	defer tasks.Close()
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	if err := tasks.Install(server); err != nil {
		fmt.Println(err)
		return
	}
	mcp.AddTool(server, &mcp.Tool{Name: "deploy"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		r, err := tasks.Start(ctx, req, func(ctx context.Context, t *gosdk.Task) (*mcp.CallToolResult, error) {
			answer, err := t.Elicit(ctx, &mcp.ElicitParams{Message: "Deploy?", RequestedSchema: map[string]any{"type": "object"}})
			if err != nil || answer.Action != "accept" {
				return text("not deployed"), err
			}
			return text("deployed"), nil
		})
		return r, nil, err
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Println(r.Params.Message)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
	})
	if err := new(gosdk.Caller).Install(client); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	ours, theirs := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, theirs, nil); err != nil {
		fmt.Println(err)
		return
	}
	session, err := client.Connect(ctx, gosdk.Transport{Transport: ours}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "deploy"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	// Output:
	// Deploy?
	// deployed
}

// TestCall calls a tool whose work ends in each way.
func TestCall(t *testing.T) {
	accept := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}
	for name, tt := range map[string]struct {
		work   gosdk.Work
		answer *mcp.ElicitResult
		want   string
		asked  int
	}{
		"accepted":    {greet, accept, "accept Ann", 1},
		"declined":    {greet, &mcp.ElicitResult{Action: "decline"}, "decline <nil>", 1},
		"broken form": {greet, nil, "cancel <nil>", 1},
		"nothing": {func(context.Context, *gosdk.Task) (*mcp.CallToolResult, error) {
			return nil, nil
		}, nil, "", 0},
		"a failed tool": {func(context.Context, *gosdk.Task) (*mcp.CallToolResult, error) {
			return nil, errors.New("no disk")
		}, nil, "failed: no disk", 0},
		"an error": {func(context.Context, *gosdk.Task) (*mcp.CallToolResult, error) {
			return nil, &jsonrpc.Error{Code: -32000, Message: "no engine"}
		}, nil, "error: no engine", 0},
		"no sampling": {func(ctx context.Context, k *gosdk.Task) (*mcp.CallToolResult, error) {
			_, err := k.Ask(ctx, &mcp.CreateMessageParams{})
			return text(fmt.Sprint(errors.Is(err, gosdk.ErrUnsupported))), nil
		}, nil, "true", 0},
		"roots": {func(ctx context.Context, k *gosdk.Task) (*mcp.CallToolResult, error) {
			a, err := k.Ask(ctx, &mcp.ListRootsParams{})
			return text(fmt.Sprintf("%T", a)), err
		}, nil, "*mcp.ListRootsResult", 0},
		"twice": {func(ctx context.Context, k *gosdk.Task) (*mcp.CallToolResult, error) {
			if _, err := greet(ctx, k); err != nil {
				return nil, err
			}
			return greet(ctx, k)
		}, accept, "accept Ann", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tasks := gosdk.New(nil)
				defer tasks.Close()
				var asked, ids, said []string
				s := connect(t, serve(tasks, tt.work), &gosdk.Caller{
					Started: func(_ *mcp.ClientSession, id string) { ids = append(ids, id) },
					Say:     func(_, message string) { said = append(said, message) },
				}, answering(tt.answer, &asked))
				defer s.Close()
				if s.InitializeResult().Capabilities.Extensions[gosdk.Extension] == nil {
					t.Error("the server does not declare the extension")
				}
				if got := call(t.Context(), s); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
					t.Errorf("%q, want %q", got, tt.want)
				}
				if len(asked) != tt.asked || len(ids) != 1 || len(said) > 1 || tt.asked > 0 && said[0] != "asking" {
					t.Errorf("%d questions, want %d; tasks %q; said %q", len(asked), tt.asked, ids, said)
				}
			})
		})
	}
}

// TestAnswers gives answers that are none: the tool does not get them.
func TestAnswers(t *testing.T) {
	for name, answer := range map[string]*mcp.ElicitResult{
		"another action": {Action: "yes"},
		"another type":   {Action: "accept", Content: map[string]any{"name": 5.0}},
		"no name":        {Action: "accept"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tasks := gosdk.New(nil)
				defer tasks.Close()
				failed := make(chan error, 1)
				s := serve(tasks, func(ctx context.Context, k *gosdk.Task) (*mcp.CallToolResult, error) {
					_, err := greet(ctx, k)
					failed <- err
					return nil, err
				})
				// The handler of the SDK checks, too, so the answer is given below it.
				caller, client := &gosdk.Caller{}, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, answering(answer, new([]string)))
				client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
					return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
						if method == "elicitation/create" {
							return answer, nil
						}
						return next(ctx, method, req)
					}
				})
				if err := caller.Install(client); err != nil {
					t.Fatal(err)
				}
				ours, theirs := mcp.NewInMemoryTransports()
				if _, err := s.Connect(t.Context(), theirs, nil); err != nil {
					t.Fatal(err)
				}
				session, err := client.Connect(t.Context(), gosdk.Transport{Transport: ours}, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer session.Close()
				if got := call(t.Context(), session); !strings.HasPrefix(got, "failed: ") {
					t.Errorf("the tool got %s", got)
				}
				if err := <-failed; !errors.Is(err, gosdk.ErrAnswer) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// TestCancel ends the context of a call: its task is cancelled, and its work ends.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := gosdk.New(nil)
		defer tasks.Close()
		ended := make(chan error, 1)
		s := connect(t, serve(tasks, func(ctx context.Context, k *gosdk.Task) (*mcp.CallToolResult, error) {
			_, err := greet(ctx, k)
			ended <- err
			return nil, err
		}), &gosdk.Caller{}, &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if got := call(ctx, s); !strings.Contains(got, "deadline") {
			t.Error(got)
		}
		if err := <-ended; err == nil {
			t.Error("the work went on")
		}
		_ = s.Close()
	})
}

// TestOlder calls from clients that take no task, and whose SDK drops it.
func TestOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := gosdk.New(nil)
		defer tasks.Close()
		s := serve(tasks, greet)
		plain := connect(t, s, nil, nil)
		defer plain.Close()
		_, err := plain.CallTool(t.Context(), &mcp.CallToolParams{Name: "work"})
		var coded *jsonrpc.Error
		if !errors.As(err, &coded) || coded.Code != mcp.CodeMissingRequiredClientCapabilities || !strings.Contains(string(coded.Data), gosdk.Extension) {
			t.Errorf("a client without the extension: %v", err)
		}
		client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
		if err := new(gosdk.Caller).Install(client); err != nil {
			t.Fatal(err)
		}
		ours, theirs := mcp.NewInMemoryTransports()
		if _, err := s.Connect(t.Context(), theirs, nil); err != nil {
			t.Fatal(err)
		}
		deaf, err := client.Connect(t.Context(), ours, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer deaf.Close()
		if got := call(t.Context(), deaf); !strings.Contains(got, "needs gosdk.Transport") {
			t.Errorf("without the transport: %s", got)
		}
	})
}

// TestLimits begins more tasks than may be open, and ends the server.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := gosdk.New(&gosdk.Options{MaxOpen: 2})
		s := connect(t, serve(tasks, func(ctx context.Context, _ *gosdk.Task) (*mcp.CallToolResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}), &gosdk.Caller{}, nil)
		defer s.Close()
		got := make(chan string, 2)
		for range 2 {
			go func() { got <- call(t.Context(), s) }()
		}
		synctest.Wait()
		if third := call(t.Context(), s); !strings.Contains(third, "no task was started: 2 tasks are unfinished") {
			t.Error(third)
		}
		tasks.Close()
		for range 2 {
			if end := <-got; end != "error: the server has ended before the task" {
				t.Error(end)
			}
		}
		if late := call(t.Context(), s); !strings.Contains(late, "no task was started") {
			t.Error(late)
		}
	})
}

// TestLost returns another result than that of Start: the task is cancelled.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := gosdk.New(nil)
		defer tasks.Close()
		ended := make(chan error, 1)
		s := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
		if err := tasks.Install(s); err != nil {
			t.Fatal(err)
		}
		mcp.AddTool(s, &mcp.Tool{Name: "work"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			_, err := tasks.Start(ctx, req, func(ctx context.Context, _ *gosdk.Task) (*mcp.CallToolResult, error) {
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return nil, nil
			})
			if _, twice := tasks.Start(ctx, req, nil); twice == nil {
				err = errors.New("a second task")
			}
			return text("something else"), nil, err
		})
		session := connect(t, s, &gosdk.Caller{}, nil)
		defer session.Close()
		if got := call(t.Context(), session); got != "something else" {
			t.Error(got)
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "no client knows") {
			t.Error(err)
		}
	})
}

// TestHTTP calls over HTTP, with streams of events and without.
func TestHTTP(t *testing.T) {
	for name, plain := range map[string]bool{"events": false, "json": true} {
		t.Run(name, func(t *testing.T) {
			tasks := gosdk.New(&gosdk.Options{Poll: 10 * time.Millisecond})
			defer tasks.Close()
			s := serve(tasks, greet)
			var names []string
			handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
				if strings.HasPrefix(r.Header.Get("Mcp-Method"), "tasks/") {
					names = append(names, r.Header.Get("Mcp-Name"))
				}
				return s
			}, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: plain})
			server := httptest.NewServer(handler)
			defer server.Close()
			var asked, ids []string
			client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, answering(&mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, &asked))
			caller := &gosdk.Caller{Started: func(_ *mcp.ClientSession, id string) { ids = append(ids, id) }}
			if err := caller.Install(client); err != nil {
				t.Fatal(err)
			}
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: gosdk.HTTPClient(server.Client())}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if got := call(t.Context(), session); got != "accept Ann" {
				t.Error(got)
			}
			if diff := cmp.Diff([]string{"Who are you?"}, asked); diff != "" || len(ids) != 1 || len(names) < 2 || names[0] != ids[0] {
				t.Errorf("asked %q, tasks %q, Mcp-Name %q", asked, ids, names)
			}
		})
	}
}
