// Package page is a place in the browser where the user of a codexserver sees what the
// agent does and decides what it may do. It is an [approval.Desk]:
//
//	p, err := page.Listen(nil) // 127.0.0.1, any free port
//	if err != nil { … }
//	defer p.Close()
//	fmt.Fprintln(os.Stderr, "approvals:", p.Link())
//	err = codexserver.New(e, &codexserver.Options{Desk: p}).Serve(ctx, transport)
//
// # The picture
//
//	engine ─ Event, Ask, Decided ─▶ board ─ GET /events ───▶ browser
//	          Ask returns ◀──────── board ◀ POST /questions ─ browser
//
// The board holds what the page shows: conversations, their entries, and the open
// questions. A browser gets all of it when it connects and afterwards whatever has
// changed; one that reads slowly gets fewer and larger changes and delays no one. The
// browser is sent text that package elicit has made visible, and makes text of it:
// nothing of what an agent, a command or a file says becomes markup.
//
// # Who is let in
//
// The server listens on 127.0.0.1 alone. A link from [Page.Link] opens the page once. Its
// secret is in the fragment, which browsers do not send; the page exchanges it for a
// token that its tab alone keeps, in sessionStorage, and sends with every request.
// Cookies are not used: every port of a host would get them.
//
// A request is refused, and changes nothing, with
//
//   - another Host than the listener's, as DNS rebinding sends it (403);
//   - an Origin or a Sec-Fetch-Site of another page, or a POST without the
//     page's own Origin (403);
//   - no token, or one that is not known (401);
//   - another method (405), or a body that is not exactly the JSON that the
//     route takes (400).
//
// No answer has a CORS header, and the page's Content-Security-Policy allows only its own
// script, style and requests, and no frames.
//
// What it does not protect against is a program of the same user that reads an unused
// link where it was printed, or the memory of the browser; and a script that something
// else on the same port has left in the browser before, which is a reason to take any
// free one.
//
// # Answers
//
// What the browser posts is an MCP ElicitResult. The page looks at its shape and hands it
// on; package elicit reads it like any client's. One answer counts: the next, and one to
// a question that was answered elsewhere, gets 409 with the decision.
//
// # Bounds
//
// The page keeps 32 conversations, of each the last 500 entries or 1 MiB, the last 64 KiB
// of a text; 64 open questions of up to 4 MiB and 2,000 files each and 32 MiB together,
// which are never cut, because an approval needs the whole question; 8 links, 16 tokens,
// 4 open pages, of which the oldest gives way. It takes 256 connections at a time.
//
// All methods of [Page] may be called concurrently. Its goroutines have ended when
// [Page.Close] returns.
package page
