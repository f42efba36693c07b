package page_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestForged sends requests that the page would not send, on every route. Each is refused,
// reveals nothing and changes nothing. The page is at two origins: its own, and that of a proxy.
func TestForged(t *testing.T) {
	const front = "https://approvals.example"
	p := listen(t, &page.Options{Origin: front})
	v := visit(t, p)
	const secretTask = "the task nobody else may see"
	p.Event(approval.Thread{ID: "1", Stop: func() { t.Error("a forged request stopped the turn") }}, protocol.UserMessage{Message: secretTask})
	back := ask(t.Context(), p, exec("1", "git", "push"))
	stream := v.Events()
	id := stream.Question("open").ID
	unused := p.Link()
	_, secret, _ := strings.Cut(unused, "/#")

	question := fmt.Sprintf("/questions/%d", id)
	session := fmt.Sprintf(`{"secret":%q}`, secret)
	routes := []struct {
		name, method, path, body string
		shell, open              bool // the shell is for all; open needs no token
	}{
		{name: "shell", method: "GET", path: "/", shell: true, open: true},
		{name: "script", method: "GET", path: "/page.js", shell: true, open: true},
		{name: "style", method: "GET", path: "/page.css", shell: true, open: true},
		{name: "session", method: "POST", path: "/session", body: session, open: true},
		{name: "events", method: "GET", path: "/events"},
		{name: "answer", method: "POST", path: question, body: `{"action":"accept"}`},
		{name: "stop", method: "POST", path: "/conversations/1/stop", body: `{}`},
	}
	header := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Del(name)
			for _, value := range values {
				r.Header.Add(name, value)
			}
		}
	}
	both := func(first, then func(*http.Request)) func(*http.Request) {
		return func(r *http.Request) { first(r); then(r) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	port := v.Origin[strings.LastIndex(v.Origin, ":"):]
	method := func(name string) func(*http.Request) { return func(r *http.Request) { r.Method = name } }
	const (
		all   = iota
		data  // not the shell
		token // what needs one
		post
	)
	forgeries := []struct {
		name  string
		on    int
		forge func(*http.Request)
		want  int
	}{
		{"another host", all, host("evil.example"), 403},
		{"localhost", all, host("localhost" + port), 403},
		{"a dot at the end", all, host("127.0.0.1." + port), 403},
		{"another host, for which a proxy's headers vouch", all, func(r *http.Request) {
			for _, name := range []string{"X-Forwarded-Host", "X-Original-Host", "X-Host"} {
				r.Header.Set(name, r.Host)
			}
			r.Header.Set("Forwarded", "host="+r.Host+";proto=http;for=127.0.0.1")
			r.Header.Set("X-Forwarded-For", "127.0.0.1")
			r.Host = "evil.example"
		}, 403},
		{"a host below the proxy's", all, host("x.approvals.example"), 403},
		{"the proxy's host in capitals", all, host("APPROVALS.example"), 403},
		{"the origin of the proxy at the page's own host", data, header("Origin", front), 403},
		{"the page's own origin at the proxy", data, both(host("approvals.example"), header("Origin", v.Origin)), 403},
		{"the proxy's origin without TLS", data, both(host("approvals.example"), header("Origin", "http://approvals.example")), 403},
		{"another origin at the proxy", data, both(host("approvals.example"), header("Origin", "https://evil.example")), 403},
		{"another site at the proxy", data, both(host("approvals.example"), header("Sec-Fetch-Site", "cross-site")), 403},
		{"no origin at the proxy", post, both(host("approvals.example"), header("Origin")), 403},
		{"no token at the proxy", token, both(both(host("approvals.example"), func(r *http.Request) {
			if r.Method == http.MethodPost {
				r.Header.Set("Origin", front)
			}
		}), header("Authorization")), 401},
		{"another origin", data, header("Origin", "http://evil.example"), 403},
		{"an origin with another scheme", data, header("Origin", "https://"+v.Origin[len("http://"):]), 403},
		{"the origin null", data, header("Origin", "null"), 403},
		{"two origins", data, header("Origin", v.Origin, "http://evil.example"), 403},
		{"cross-site", data, header("Sec-Fetch-Site", "cross-site"), 403},
		{"same-site, as another port is", data, header("Sec-Fetch-Site", "same-site"), 403},
		{"no origin", post, header("Origin"), 403},
		{"no token", token, header("Authorization"), 401},
		{"another token", token, header("Authorization", "Bearer "+strings.Repeat("A", 43)), 401},
		{"a link's secret for a token", token, header("Authorization", "Bearer "+secret), 401},
		{"a longer token", token, header("Authorization", "Bearer "+v.Token+"A"), 401},
		{"another scheme", token, header("Authorization", "Basic "+v.Token), 401},
		{"two tokens", token, header("Authorization", "Bearer "+v.Token, "Bearer "+v.Token), 401},
		{"the token as a cookie", token, func(r *http.Request) {
			r.Header.Del("Authorization")
			r.Header.Set("Cookie", "token="+v.Token)
		}, 401},
		{"the token in the query", token, func(r *http.Request) {
			r.Header.Del("Authorization")
			r.URL.RawQuery = "token=" + v.Token
		}, 401},
		{"HEAD", all, method("HEAD"), 405},
		{"DELETE", all, method("DELETE"), 405},
		{"OPTIONS, as a preflight", all, method("OPTIONS"), 405},
		{"GET for POST", post, method("GET"), 405},
		{"a form's content type", post, header("Content-Type", "application/x-www-form-urlencoded"), 400},
		{"no content type", post, header("Content-Type"), 400},
	}
	for _, route := range routes {
		if route.shell { // which anybody gets, and which holds nothing
			res, body := v.Send(v.Request(route.method, route.path, ""))
			checkHeaders(t, res)
			if res.StatusCode != 200 || body == "" || strings.Contains(body, secretTask) || strings.Contains(body, "git push") {
				t.Errorf("%s: %s %s", route.path, res.Status, body)
			}
		}
		for _, f := range forgeries {
			if route.shell && f.on != all || route.open && f.on == token || route.method != "POST" && f.on == post {
				continue
			}
			t.Run(route.name+"/"+f.name, func(t *testing.T) {
				r := v.Request(route.method, route.path, route.body)
				f.forge(r)
				res, body := v.Send(r)
				if res.StatusCode != f.want {
					t.Errorf("status %d, want %d: %s", res.StatusCode, f.want, body)
				}
				checkHeaders(t, res)
				if strings.Contains(body, secretTask) || strings.Contains(body, v.Token) {
					t.Errorf("it was told: %s", body)
				}
			})
		}
	}
	for name, body := range badBodies {
		for _, path := range []string{"/session", question, "/conversations/1/stop"} {
			t.Run(path+"/"+name, func(t *testing.T) {
				res, text := v.Send(v.Request("POST", path, body))
				if res.StatusCode != 400 {
					t.Errorf("status %d, want 400: %s", res.StatusCode, text)
				}
				checkHeaders(t, res)
			})
		}
	}
	for _, path := range []string{"/questions/", "/questions/x", "/questions/-1", "/questions/99999", "/questions/1/2", "/questions/99999999999999999999"} {
		if status, _ := v.Post(path, `{"action":"accept"}`); status != 404 {
			t.Errorf("%s: %d, want 404", path, status)
		}
	}

	// Nothing has happened.
	select {
	case got := <-back:
		t.Fatalf("a forged request answered the question: %q, %v", got.answer, got.err)
	default:
	}
	if status, body := v.Post("/session", session); status != 200 {
		t.Errorf("a forged request used the link up: %d %s", status, body)
	}
	if status, body := v.Post("/session", session); status != 403 {
		t.Errorf("the link worked twice: %d %s", status, body)
	}
	through := v.Request("POST", question, `{"action":"decline"}`) // as the proxy passes it on
	both(host("approvals.example"), both(header("Origin", front), header("X-Forwarded-Host", "evil.example")))(through)
	if res, body := v.Send(through); res.StatusCode != 204 {
		t.Errorf("the question was not open any more, or not at the proxy: %s %s", res.Status, body)
	}
	get(t, back)
}

var badBodies = map[string]string{
	"empty":                         ``,
	"null":                          `null`,
	"not JSON":                      `{"action":accept}`,
	"cut":                           `{"action":"accept"`,
	"a byte after it":               "{\"action\":\"accept\"}\x00",
	"an unknown member":             `{"action":"accept","secret":"","x":1}`,
	"a duplicate member":            `{"action":"decline","action":"accept","secret":"","secret":""}`,
	"a duplicate below":             `{"action":"accept","content":{"decision":"denied","decision":"approved"}}`,
	"another case":                  `{"Action":"accept"}`,
	"an unknown action":             `{"action":"approve"}`,
	"an unknown decision":           `{"action":"accept","content":{"decision":"yes"}}`,
	"content that is not an object": `{"action":"accept","content":[]}`,
	"a decision beside action":      `{"action":"accept","decision":"approved"}`,
	"not UTF-8":                     "{\"action\":\"accept\xff\"}",
	"too long":                      `{"action":"decline","content":{"feedback":"` + strings.Repeat("a", 40<<10) + `"}}`,
	"long blanks":                   strings.Repeat(" ", 40<<10) + `{}`,
}

// checkHeaders checks the headers that every answer must have.
func checkHeaders(t *testing.T, res *http.Response) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options":       "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cache-Control":                "no-store",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
	} {
		must.Equal(t, name, want, res.Header.Get(name))
	}
	policy := res.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy %q lacks %s", policy, part)
		}
	}
	for name := range res.Header {
		if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" {
			t.Errorf("there is a header %s", name)
		}
	}
}

// TestRestartOnTheSamePort restarts the server, which numbers its questions from the start again. A tab, a link and an answer of
// the previous server decide nothing. A second server cannot use the port at the same time.
func TestRestartOnTheSamePort(t *testing.T) {
	before := listen(t, nil)
	v := visit(t, before)
	stale := before.Link()
	back := ask(t.Context(), before, exec("1", "git", "status"))
	id := v.Events().Question("open").ID
	_, number, _ := strings.Cut(v.Origin, "127.0.0.1:")
	port := must.Get(strconv.Atoi(number))(t)
	if second, err := page.Listen(&page.Options{Port: port}); err == nil {
		second.Close()
		t.Fatal("two servers on one port")
	}
	must.OK(t, before.Close())
	get(t, back)

	after := listen(t, &page.Options{Port: port})
	back = ask(t.Context(), after, exec("1", "rm", "-rf", "/"))
	stream := visit(t, after).Events()
	if now := stream.Question("open").ID; now != id {
		t.Fatalf("the question is number %d, it was %d", now, id)
	}
	_, secret, _ := strings.Cut(stale, "/#")
	for _, tt := range []struct {
		path, body string
		want       int
	}{
		{fmt.Sprintf("/questions/%d", id), `{"action":"accept"}`, http.StatusUnauthorized},
		{"/conversations/1/stop", `{}`, http.StatusUnauthorized},
		{"/session", fmt.Sprintf(`{"secret":%q}`, secret), http.StatusForbidden},
	} {
		if status, body := v.Post(tt.path, tt.body); status != tt.want {
			t.Errorf("%s: %d %s", tt.path, status, body)
		}
	}
	if res, _ := v.Send(v.Request(http.MethodGet, "/events", "")); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("events: %s", res.Status)
	}
	select {
	case got := <-back:
		t.Errorf("the question was answered: %+v", got)
	default:
	}
}
