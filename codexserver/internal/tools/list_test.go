package tools_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

// shelf is an engine with a list of conversations. A cursor is the index of an element.
type shelf struct {
	*servertest.Engine
	all    []protocol.ConversationSummary
	calls  int
	looked int
	eager  bool // its last page has a cursor, too
}

func (s *shelf) List(_ context.Context, p protocol.ListConversationsParams) (*protocol.ListConversationsResult, error) {
	s.calls++
	from := 0
	if p.Cursor != "" {
		var err error
		if from, err = strconv.Atoi(p.Cursor); err != nil {
			return nil, engine.ErrCursor
		}
	}
	size := 25
	if p.PageSize != nil {
		size = *p.PageSize
	}
	to := min(from+size, len(s.all))
	s.looked += to - from
	r := &protocol.ListConversationsResult{Items: s.all[from:to]}
	if to < len(s.all) || s.eager && to > from {
		r.NextCursor = new(strconv.Itoa(to))
	}
	return r, nil
}

// show calls codex-list and returns its rows, each as an index and a preview, and the cursor.
func (s *shelf) show(t *testing.T, arguments string) (rows []string, next string) {
	t.Helper()
	var list struct {
		Conversations []struct{ ThreadID, Preview string }
		NextCursor    string
	}
	r := use(t, servertest.Connect(t, codexserver.New(s, nil), nil), "codex-list", "{"+arguments+"}", &list)
	if r.IsError {
		return []string{r.Content[0].Text}, ""
	}
	for _, row := range list.Conversations {
		rows = append(rows, row.ThreadID+" "+row.Preview)
	}
	return rows, list.NextCursor
}

// TestListTitles checks that a title is one line of at most 120 characters.
func TestListTitles(t *testing.T) {
	long := strings.Repeat("é", 119)
	s := &shelf{Engine: &servertest.Engine{}, all: []protocol.ConversationSummary{
		{ConversationID: "0", Preview: "  fix\n\tthe bug\n" + strings.Repeat("why ", 50_000)},
		{ConversationID: "1", Preview: long},
		{ConversationID: "2", Preview: long + "é"},
		{ConversationID: "3", Preview: strings.Repeat("\x1b]2;x\u202e", 200)},
		{ConversationID: "4", Preview: "first message", Title: "a name"},
		{ConversationID: "5", Preview: "first message", Title: " \n"},
	}}
	rows, _ := s.show(t, "")
	for i, want := range []string{"0 fix the bug why why ", "1 " + long, "2 " + long + "…", `3 \x1b]2;x\u{202e}`, "4 a name", "5 first message"} {
		_, title, _ := strings.Cut(rows[i], " ")
		if !strings.HasPrefix(rows[i], want) || utf8.RuneCountInString(title) > 120 || strings.ContainsAny(title, "\n\t\x1b\u202e") {
			t.Errorf("%d characters: %q, want %q…", utf8.RuneCountInString(title), rows[i], want)
		}
	}
}

// TestListSearch checks the search, the folder, the bound and the cursor of codex-list.
func TestListSearch(t *testing.T) {
	dir := t.TempDir()
	work, link := filepath.Join(dir, "work"), filepath.Join(dir, "link")
	must(t, os.Mkdir(work, 0o755))
	testenv.NeedsLinks(t)
	must(t, os.Symlink(work, link))
	newShelf := func() *shelf {
		s := &shelf{Engine: &servertest.Engine{}}
		for i := range 5000 {
			c := protocol.ConversationSummary{ConversationID: strconv.Itoa(i), Preview: "p", Cwd: "/gone"}
			switch {
			case i%1000 == 7:
				c.Preview = "Fix the\nPARSER " + strings.Repeat("x", 500) + " at last"
			case i%1000 == 8:
				c.Title, c.Cwd = "The parser", work
			case i%1000 == 9:
				c.Cwd = link + "/"
			}
			s.all = append(s.all, c)
		}
		return s
	}
	ids := func(rows []string) (all []string) {
		for _, row := range rows {
			id, _, _ := strings.Cut(row, " ")
			all = append(all, id)
		}
		return all
	}
	for _, tt := range []struct {
		arguments string
		want      []string
		next      string
	}{
		{`"search":"Parser"`, []string{"7", "8", "1007", "1008"}, "2000"},
		{`"search":"parser","cursor":"2000"`, []string{"2007", "2008", "3007", "3008"}, "4000"},
		{`"search":"parser","cursor":"4000"`, []string{"4007", "4008"}, ""},
		{`"search":"parser","pageSize":2`, []string{"7", "8"}, "9"},
		{`"search":"parser","pageSize":3,"cursor":"9"`, []string{"1007", "1008", "2007"}, "2008"},
		{`"search":"AT LAST","pageSize":1`, []string{"7"}, "8"},
		{`"search":"nowhere"`, nil, "2000"},
		{`"search":"nowhere","cursor":"4000"`, nil, ""},
		{fmt.Sprintf(`"cwd":%q,"pageSize":3`, work), []string{"8", "9", "1008"}, "1009"},
		{fmt.Sprintf(`"cwd":%q,"search":"parser","pageSize":2`, link), []string{"8", "1008"}, "1009"},
		{`"cwd":"/gone/../gone/","search":"parser","pageSize":1`, []string{"7"}, "8"},
		{fmt.Sprintf(`"cwd":%q`, dir), nil, "2000"},
		{`"pageSize":0,"search":"parser"`, nil, "0"},
		{`"pageSize":2`, []string{"0", "1"}, "2"},
		{`"search":null,"cwd":null,"pageSize":null,"cursor":"4990"`, []string{"4990", "4991", "4992", "4993", "4994", "4995", "4996", "4997", "4998", "4999"}, ""},
	} {
		s := newShelf()
		rows, next := s.show(t, tt.arguments)
		if diff := cmp.Diff(tt.want, ids(rows)); diff != "" || next != tt.next {
			t.Errorf("%s: cursor %q, want %q (-want +got):\n%s", tt.arguments, next, tt.next, diff)
		}
		if s.calls > 6 || s.looked > 3000 {
			t.Errorf("%s: %d calls looked at %d conversations", tt.arguments, s.calls, s.looked)
		}
	}
	for arguments, want := range map[string]string{`"cursor":"4990"`: "", `"cursor":"4990","pageSize":10`: "", `"cursor":"4990","pageSize":9`: "4999", `"cursor":"4000","search":"parser"`: ""} {
		s := newShelf()
		s.eager = true
		if _, next := s.show(t, arguments); next != want {
			t.Errorf("{%s} of an engine with a cursor on the last page: cursor %q, want %q", arguments, next, want)
		}
	}
	for arguments, want := range map[string]int{``: 25, `"pageSize":50`: 50, `"pageSize":1000000`: 50, `"pageSize":-1`: 0, `"search":"p","pageSize":1000000`: 50} {
		if rows, _ := newShelf().show(t, arguments); len(rows) != want {
			t.Errorf("{%s}: %d rows, want %d", arguments, len(rows), want)
		}
	}
	for arguments, want := range map[string]string{
		`"cursor":"bogus"`:              "codex-list: argument /cursor: not the nextCursor of a page",
		`"cursor":"bogus","search":"p"`: "codex-list: argument /cursor: not the nextCursor of a page",
		`"cursor":5`:                    "codex-list: argument /cursor: got number, want string",
		`"search":["p"]`:                "codex-list: argument /search: got array, want string",
		`"cwd":true`:                    "codex-list: argument /cwd: got boolean, want string",
		`"pageSize":"five"`:             "codex-list: argument /pageSize: got string, want integer",
	} {
		if rows, _ := newShelf().show(t, arguments); len(rows) != 1 || rows[0] != want {
			t.Errorf("{%s}: %q, want %q", arguments, rows, want)
		}
	}
}
