package turn_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
)

// anything is a want for kinds whose report depends on the rights of the user.
const anything = "*"

// kind is a kind of change. Its scripts run in a repository with a file a.txt of three lines, or in a folder without one.
type kind struct {
	name    string
	noGit   bool
	asRoot  bool   // cannot be tried by another user
	shares  bool   // a repository with others, in which each has a folder
	cwd     string // below the folder
	roots   bool   // ../root is a writable root
	lay     string // makes more before the turn
	act     string // is the turn's command
	user    string // is what the user does while the turn runs and no command
	options changes.Options
	// want has a line for each change, "? " before those that were not looked at, and the notes of the diff.
	want string
}

// sparse makes the files d/d and e/e, and hides e.
const sparse = "mkdir d e; echo d > d/d; echo e > e/e; git add .; git commit -q -m d; git sparse-checkout set "

const submodule = "git init -q ../lib; (cd ../lib; echo l > l.txt; git add .; git commit -q -m lib); " +
	"git -c protocol.file.allow=always submodule --quiet add ../lib sub; git commit -q -m sub; "

// inFolders returns one kind of those that share a repository. Those that commit come first: they
// would commit what others stage.
func inFolders(all []kind) kind {
	commits := func(k kind) bool { return strings.Contains(k.lay, "git commit") }
	all = slices.Concat(slices.DeleteFunc(slices.Clone(all), func(k kind) bool { return !commits(k) }), slices.DeleteFunc(slices.Clone(all), commits))
	one := kind{name: "in folders"}
	var folders, lay, notes string
	var unknown []string
	for i, k := range all {
		dir := fmt.Sprintf("k%02d", i)
		folders += " " + dir
		lay += "(cd " + dir + "; " + k.lay + ")\n"
		one.act += "(cd " + dir + "; " + k.act + ")\n"
		in := strings.NewReplacer("add ", "add "+dir+"/", "update ", "update "+dir+"/", "delete ", "delete "+dir+"/", "rename ", "rename "+dir+"/", ">", ">"+dir+"/", "? ", "? "+dir+"/")
		for line := range strings.Lines(k.want) {
			switch {
			case strings.HasPrefix(line, "? "):
				unknown = append(unknown, in.Replace(line))
			case strings.HasPrefix(line, "# "):
				notes += in.Replace(line)
			default:
				one.want += in.Replace(line)
			}
		}
	}
	slices.SortStableFunc(unknown, func(a, b string) int { return strings.Compare(a[strings.Index(a, ": "):], b[strings.Index(b, ": "):]) })
	one.want += strings.Join(unknown, "") + notes
	one.lay = "for d in" + folders + "; do mkdir $d; cp -p a.txt $d; done; git add .; git commit -q -m folders\n" + lay
	return one
}

var kinds = []kind{
	// Contents.
	{name: "nothing", shares: true, act: "cat a.txt", want: ""},
	{name: "text edit", shares: true, act: "echo four >> a.txt", want: "update a.txt +1-0\n"},
	{name: "create", shares: true, act: "mkdir -p d; echo x > d/new", want: "add d/new +1-0\n"},
	{name: "delete", shares: true, act: "rm a.txt", want: "delete a.txt +0-3\n"},
	{name: "rename", act: "git mv a.txt b.txt", want: "rename a.txt>b.txt +0-0\n"},
	{name: "rename with an edit", shares: true, lay: "seq 50 > long; git add long; git commit -q -m l", act: "sed s/25/x/ long > moved; rm long", want: "rename long>moved +1-1\n"},
	{name: "rename of odd names", shares: true, lay: "seq 9 > 'o\"\xc3\xa9'; seq 10 20 > p; git add .; git commit -q -m o", act: "mv 'o\"\xc3\xa9' q; mv p 'r\"\xc3\xa9'; echo 21 >> 'r\"\xc3\xa9'", want: "rename o\"\xc3\xa9>q +0-0\nrename p>r\"\xc3\xa9 +1-0\n"},
	{name: "copy", act: "cp a.txt c.txt", want: "add c.txt +3-0\n"},
	{name: "touched", shares: true, act: "touch -d 2001-01-01 a.txt", want: ""},
	{name: "change and back", shares: true, act: "echo x > a.txt; printf 'one\\ntwo\\nthree\\n' > a.txt", want: ""},
	{name: "dirty before", shares: true, lay: "echo dirty > a.txt; echo b > b; git add b; git commit -q -m b; echo dirty > b", act: "echo dirtx > a.txt; echo b > b", want: "update a.txt +1-1\nupdate b +1-1\n"},
	{name: "deleted before", shares: true, lay: "rm a.txt", act: "echo one > a.txt", want: "add a.txt +1-0\n"},
	{name: "delete and make again", shares: true, act: "rm a.txt; printf 'one\\n2\\nthree\\n' > a.txt", want: "update a.txt +1-1\n"},
	{name: "same size and time", act: "touch -r a.txt ../t; printf 'one\\nTWO\\nthree\\n' > a.txt; touch -r ../t a.txt", want: "update a.txt +1-1\n"},
	{name: "same size and time, in a second", shares: true, lay: "echo one > d; touch -d 2001-01-01 d", act: "touch -r d t; echo two > d; touch -r t d; rm t", want: "update d +1-1\n"},
	{name: "empty files", shares: true, lay: ": > e; git add e; git commit -q -m e", act: "rm e; : > new; : > a.txt", want: "update a.txt +0-3\nrename e>new +0-0\n"},
	{name: "no final newline", shares: true, act: "printf 'one\\ntwo\\nthree' > a.txt; printf x > b", want: "update a.txt +1-1\nadd b +1-0\n"},
	{name: "CRLF", shares: true, lay: "printf 'a\\r\\nb\\r\\n' > crlf; git add .; git commit -q -m c", act: "printf 'a\\r\\nB\\r\\n' > crlf; printf 'x\\r\\ny\\n' > mixed", want: "update crlf +1-1\nadd mixed +2-0\n"},
	{name: "a very long line", shares: true, act: "head -c 300000 /dev/zero | tr '\\0' x > long", want: "add long +1-0\n"},
	{name: "binary files", shares: true, lay: "printf '\\0\\1\\2' > b; git add b; git commit -q -m b", act: "printf '\\0\\1\\3\\4' > b; head -c 5000 /dev/urandom > c; echo y >> a.txt", want: "update a.txt +1-0\nupdate b\nadd c\n"},
	{name: "a NUL late in a text", shares: true, act: "(seq 5000; printf 'x\\0y\\n') > late", want: "add late +5001-0\n# not in this diff (it is not text): add late\n"},
	{name: "invalid UTF-8", shares: true, lay: "printf 'caf\\351\\nb\\n' > l1; git add .; git commit -q -m l", act: "printf 'caf\\351s\\nb\\n' > l1; printf '\\377\\376x\\n' > bom; echo x > plain", want: "add bom +1-0\nupdate l1 +1-1\nadd plain +1-0\n# not in this diff (it is not text): add bom\n# not in this diff (it is not text): update l1\n"},
	{name: "a large file", shares: true, act: "seq 900000 > big; echo x > small", want: "add big +900000-0\nadd small +1-0\n# not in this diff (too large): add big\n"},
	{name: "a huge file", shares: true, lay: "truncate -s 20M huge", act: "printf x | dd of=huge bs=1 seek=100 conv=notrunc status=none; echo x > small", want: "update huge\nadd small +1-0\n# not in this diff (too large, or it cannot be read): update huge\n"},

	{name: "huge files come and go", shares: true, lay: "truncate -s 20M same gone shrunk", act: "rm gone; echo x > shrunk; truncate -s 20M new a.txt",
		want: "update a.txt\ndelete gone\nadd new\nupdate shrunk\n# not in this diff (too large, or it cannot be read): update a.txt\n# not in this diff (too large, or it cannot be read): delete gone\n# not in this diff (too large, or it cannot be read): add new\n# not in this diff (too large, or it cannot be read): update shrunk\n"},

	// Names, modes and types.
	{name: "odd names", shares: true, act: "echo 1 > 'a\"b'; echo 2 > \"$(printf 'tab\\there')\"; echo 3 > \"$(printf 'new\\nline')\"; echo 4 > ' lead'; echo 5 > 'back\\slash'; echo 6 > -dash; echo 7 > ':(top)x'; echo 8 > 'a b'; echo 9 > 'é'",
		want: "add  lead +1-0\nadd -dash +1-0\nadd :(top)x +1-0\nadd a b +1-0\nadd a\"b +1-0\nadd back\\slash +1-0\nadd new\nline +1-0\nadd tab\there +1-0\nadd é +1-0\n"},
	{name: "a name that is not UTF-8", shares: true, act: "echo x > \"$(printf 'n\\377')\"; printf y > \"$(printf 'm\\376')\"", want: "add m\xfe +1-0\nadd n\xff +1-0\n"},
	{name: "odd names without a repository", noGit: true, act: "echo x > \"$(printf 'n\\377')\"; echo 1 > 'a\"b'; echo 2 > '\"q\"'; echo 3 > \"$(printf 'new\\nline')\"; echo 4 > 'new\\nline'; echo 5 > \"$(printf 'esc\\033[2J')\"",
		want: "add \"q\" +1-0\nadd a\"b +1-0\nadd esc\x1b[2J +1-0\nadd new\nline +1-0\nadd new\\nline +1-0\nadd n\xff +1-0\n"},
	{name: "names that read alike", shares: true, act: "echo 1 > \"$(printf 'a\\342\\200\\256b')\"; echo 2 > 'a\\u{202e}b'; echo 3 > \"$(printf 'a\\342\\200\\213')\"", want: "add a\\u{202e}b +1-0\nadd a\u200b +1-0\nadd a\u202eb +1-0\n"},
	{name: "long names", shares: true, act: "n=$(printf '%0255d' 0); mkdir -p $n/$n; echo x > $n/$n/$n; echo y > \"$(printf '\\001%0254d' 0)\"", want: "add \x01" + strings.Repeat("0", 254) + " +1-0\nadd " + strings.Repeat("0", 255) + "/" + strings.Repeat("0", 255) + "/" + strings.Repeat("0", 255) + " +1-0\n"},
	{name: "long names without a repository", noGit: true, act: "n=$(printf '%0255d' 0); mkdir -p $n/$n; echo x > $n/$n/$n", want: "add " + strings.Repeat("0", 255) + "/" + strings.Repeat("0", 255) + "/" + strings.Repeat("0", 255) + " +1-0\n"},
	{name: "normalisation pairs", shares: true, act: "echo 1 > \"$(printf 'e\\314\\201')\"; echo 2 > \"$(printf '\\303\\251')\"", want: "add e\u0301 +1-0\nadd \u00e9 +1-0\n"},
	{name: "rename of case", act: "mv a.txt A.txt", want: "rename a.txt>A.txt +0-0\n"},
	{name: "mode", shares: true, act: "chmod +x a.txt", want: "update a.txt +0-0\n"},
	{name: "core.fileMode is false", lay: "git config core.fileMode false", act: "chmod +x a.txt", want: "update a.txt +0-0\n"},
	{name: "core.fileMode is false, and more", lay: "echo b > b; git add b; git commit -q -m b; git config core.fileMode no; chmod +x b; echo u > u; chmod +x u", act: "echo x >> a.txt; chmod +x a.txt; echo n > n; chmod +x n; touch b u", want: "update a.txt +1-0\nadd n +1-0\n"},
	{name: "a file system without modes", lay: "git config core.fileMode false; chmod +x .git/config; echo b > b; chmod +x b; git add b; git update-index --chmod=+x b; git commit -q -m b", act: "chmod +x a.txt; echo x >> a.txt; chmod -x b; echo y >> b", want: "update a.txt +1-0\nupdate b +1-0\n? : core.fileMode is false, so changed modes do not show\n"},
	{name: "core.fileMode is false, and a mode goes away", lay: "echo b > b; chmod +x b; git add b; git commit -q -m b; git config core.fileMode 0; echo u > u; chmod +x u", act: "chmod -x b u", want: "update b +0-0\nupdate u +0-0\n"},
	{name: "symbolic links", lay: "ln -s a.txt l; echo f > f; git add .; git commit -q -m l", act: "ln -sfn nowhere l; ln -s a.txt new; rm f; ln -s a.txt f; rm a.txt; ln -s x a.txt", want: anything},
	{name: "a link becomes a file", shares: true, lay: "ln -s a.txt l; git add .; git commit -q -m l", act: "rm l; echo x > l", want: "update l +1-1\n"},
	{name: "a file becomes a folder", shares: true, act: "rm a.txt; mkdir a.txt; echo x > a.txt/x", want: "delete a.txt +0-3\nadd a.txt/x +1-0\n"},
	{name: "a folder becomes a file", shares: true, lay: "mkdir d; echo unlike > d/x; git add .; git commit -q -m d", act: "rm -r d; printf 'y\\nz\\n' > d", want: "add d +2-0\ndelete d/x +0-1\n"},
	{name: "a folder becomes a link", lay: "mkdir -p d/e; echo x > d/x; echo y > d/e/y; git add d; git commit -q -m d", act: "mv d ../moved; ln -s ../moved d", want: "add d +1-0\ndelete d/e/y +0-1\ndelete d/x +0-1\n"},
	{name: "hard links", shares: true, lay: "ln a.txt h", act: "echo x >> a.txt", want: "update a.txt +1-0\nupdate h +1-0\n"},
	{name: "special files", shares: true, lay: "mkfifo old", act: "mkfifo pipe; rm old; rm a.txt; mkfifo a.txt", want: "update a.txt\ndelete old\nadd pipe\n# not in this diff (a special file): update a.txt\n# not in this diff (a special file): delete old\n# not in this diff (a special file): add pipe\n"},
	{name: "an unreadable file", asRoot: true, lay: "echo s > s; chmod 0 s", act: "chmod 600 s; echo t > s; chmod 0 s", want: anything},
	{name: "a read-only folder", shares: true, lay: "mkdir d; echo x > d/x", act: "chmod 500 d; echo y > d/x; chmod 700 d", want: "update d/x +1-1\n"},

	// What git knows.
	{name: "ignored", lay: "printf 'out/\\n*.log\\n' > .gitignore", act: "mkdir out; echo x > out/x; echo y > y.log; echo z > z", want: "add z +1-0\n? : git ignores out/, y.log\n"},
	{name: "ignored in new folders", lay: "echo '*.log' > .gitignore", act: "mkdir -p d q/e; echo a > d/a; echo x > d/x.log; echo l > q/e/l.log", want: "add d/a +1-0\n? : git ignores d/x.log, q/e/l.log\n"},
	{name: "an ignored file is gone", lay: "echo '*.log' > .gitignore; echo x > x.log", act: "rm x.log", want: "? : git ignores x.log\n"},
	{name: "untracked before", shares: true, lay: "echo u > u", act: "echo v > u", want: "update u +1-1\n"},
	{name: "staged before", shares: true, lay: "echo s > s; git add s", act: "echo t >> s", want: "update s +1-0\n"},
	{name: "partly staged", shares: true, lay: "echo s >> a.txt; git add .; echo u >> a.txt", act: "echo t >> a.txt; git add .", want: "update a.txt +1-0\n"},
	{name: "intent to add", shares: true, lay: "echo i > i; git add -N i; echo j > j; git add -N j", act: "echo k > i", want: "update i +1-1\n"},
	{name: "assume unchanged", shares: true, lay: "git update-index --assume-unchanged a.txt", act: "echo x >> a.txt", want: "update a.txt +1-0\n"},
	{name: "skip worktree", shares: true, lay: "git update-index --skip-worktree a.txt", act: "echo x >> a.txt", want: "update a.txt +1-0\n"},
	{name: "sparse checkout", lay: "mkdir d e; echo d > d/d; echo e > e/e; git add .; git commit -q -m d; git sparse-checkout set --cone --sparse-index d", act: "echo x >> d/d; mkdir e; echo new > e/new", want: "update d/d +1-0\nadd e/new +1-0\n"},
	{name: "a hidden file is made again", lay: sparse + "--cone d", act: "mkdir e; echo e > e/e", want: "add e/e +1-0\n"},
	{name: "a hidden file is made with other content", lay: sparse + "--cone d", act: "mkdir e; echo f > e/e; echo x > e/x", want: "add e/e +1-0\nadd e/x +1-0\n"},
	{name: "a hidden file is made, with a sparse index", lay: sparse + "--cone --sparse-index d", act: "mkdir e; echo e > e/e", want: "add e/e +1-0\n"},
	{name: "sparse checkout is widened", lay: sparse + "--cone d", act: "git sparse-checkout add e", want: "add e/e +1-0\n"},
	{name: "sparse checkout is widened, with a sparse index", lay: sparse + "--cone --sparse-index d", act: "git sparse-checkout add e; echo x >> e/e", want: "add e/e +2-0\n"},
	{name: "sparse checkout is narrowed", lay: sparse + "--cone d e", act: "git sparse-checkout set --sparse-index d", want: "delete e/e +0-1\n"},
	{name: "sparse checkout by patterns", lay: sparse + "--no-cone '/*' '!e/'", act: "git sparse-checkout disable", want: "add e/e +1-0\n"},
	{name: "a hidden file of a conflict", lay: sparse + "--cone d; git checkout -q -b f; git sparse-checkout disable; echo f > e/e; git commit -q -a -m f; git checkout -q main; echo m > e/e; git commit -q -a -m m; git sparse-checkout set d", act: "git merge -q f || true", want: anything},
	{name: "commit", act: "echo x >> a.txt; echo n > n; git add .; git commit -q -m by-codex", want: "update a.txt +1-0\nadd n +1-0\n"},
	{name: "another branch", lay: "git checkout -q -b other; echo o > o; git add .; git commit -q -m o; git checkout -q main", act: "git checkout -q other", want: "add o +1-0\n"},
	{name: "stash", lay: "echo x >> a.txt", act: "git stash -q", want: "update a.txt +0-1\n"},
	{name: "reset", lay: "echo x >> a.txt; git commit -q -a -m x", act: "git reset -q --hard HEAD~1", want: "update a.txt +0-1\n"},
	{name: "rebase", lay: "git checkout -q -b f; echo f > f; git add .; git commit -q -m f; git checkout -q main; echo m > m; git add .; git commit -q -m m; git checkout -q f", act: "git rebase -q main", want: "add m +1-0\n"},
	{name: "a conflict", lay: "git checkout -q -b f; echo f > a.txt; git commit -q -a -m f; git checkout -q main; echo m > a.txt; git commit -q -a -m m", act: "git merge -q f || true", want: "update a.txt +4-0\n"},
	{name: "index.lock", lay: ": > .git/index.lock", act: "echo x >> a.txt", want: "update a.txt +1-0\n"},
	{name: "no commit yet", lay: "rm -rf .git; git init -q; git add a.txt", act: "echo x >> a.txt; echo y > y", want: "update a.txt +1-0\nadd y +1-0\n"},
	{name: "a worktree of a bare repository", lay: "git clone -q --bare . ../bare.git; rm -rf .git a.txt; git -C ../bare.git worktree add -q ../w2 main; mv ../w2/.git ../w2/a.txt .; git -C ../bare.git worktree repair -q . >/dev/null 2>&1 || true", act: "echo x >> a.txt", want: "update a.txt +1-0\n"},
	{name: "the repository is removed", act: "rm -rf .git; echo x >> a.txt", want: "? TOP/w: its repository is gone\n"},
	{name: "the repository is made", noGit: true, act: "git init -q; git add .; git commit -q -m x; echo x >> a.txt", want: "update a.txt +1-0\n"},
	{name: "in an ignored folder", lay: "echo out/ > .gitignore; mkdir out; echo x > out/x; echo y > out/y", cwd: "out", act: "echo x >> out/x; rm out/y; echo z > out/z; echo x >> a.txt", want: "update a.txt +1-0\nupdate out/x +1-0\ndelete out/y +0-1\nadd out/z +1-0\n"},
	{name: "below an ignored folder", lay: "printf 'out/\\n*.log\\n' > .gitignore; mkdir -p out/d; echo x > out/x; echo y > out/d/y; echo l > l.log", cwd: "out/d", act: "echo x >> out/d/y; echo x >> out/x; echo m > l.log", want: "update out/d/y +1-0\n? : git ignores l.log, out/\n"},
	{name: "in a folder of the repository", lay: "mkdir d; echo x > d/x", cwd: "d", act: "echo y >> a.txt; echo y >> d/x", want: "update a.txt +1-0\nupdate d/x +1-0\n"},

	// Attributes.
	{name: "no diff attribute", shares: true, lay: "printf '*.txt -diff\\n*.svg binary\\n' > .gitattributes; echo s > s.svg; git add .; git commit -q -m a", act: "echo x >> a.txt; echo y >> s.svg", want: "update a.txt\nupdate s.svg\n"},
	{name: "no diff attribute of a folder above, and of a file that was not known", shares: true, lay: "mkdir d; echo '*.svg -diff' > .gitattributes; echo s > d/s.svg; git add d; git commit -q -m a", act: "echo y >> d/s.svg; echo t > d/t.svg", want: "update d/s.svg\nadd d/t.svg\n"},
	{name: "a diff driver", shares: true, lay: "echo '*.txt diff=evil' > .gitattributes; git config diff.evil.textconv 'touch ran; cat'; git config diff.evil.command 'touch ran'; git add .; git commit -q -m a", act: "echo x >> a.txt", want: "update a.txt +1-0\n"},
	{name: "eol", shares: true, lay: "echo '*.txt text eol=crlf' > .gitattributes; git add .; git commit -q -m a; rm a.txt; git checkout -q a.txt", act: "printf 'one\\r\\n2\\r\\nthree\\r\\n' > a.txt; printf 'n\\r\\n' > n.txt", want: "update a.txt +1-1\nadd n.txt +1-0\n"},
	{name: "core.autocrlf", lay: "git config core.autocrlf true; rm a.txt; git checkout -q a.txt", act: "printf 'one\\r\\n2\\r\\nthree\\r\\n' > a.txt; printf 'n\\r\\n\\0' > b; echo n > n",
		want: "update a.txt +1-1\nadd b\nadd n +1-0\n# not in this diff (git would not restore its bytes, because it converts them): add n\n"},
	{name: "eol, and files with LF", shares: true, lay: "echo '* text=auto eol=crlf' > .gitattributes; git add .; git commit -q -m a", act: "printf 'one\\n2\\nthree\\n' > a.txt",
		want: "update a.txt +1-1\n# not in this diff (git would not restore its bytes, because it converts them): update a.txt\n"},
	{name: "core.autocrlf, and files with LF", lay: "git config core.autocrlf true; echo '*.svg -diff' > .gitattributes; git add .; git commit -q -m a", act: "printf 'one\\n2\\nthree\\n' > a.txt",
		want: "update a.txt +1-1\n# not in this diff (git would not restore its bytes, because it converts them): update a.txt\n"},
	{name: "core.autocrlf=input, and a file with CRLF", lay: "printf 'one\\r\\ntwo\\r\\nthree\\r\\n' > a.txt; git config core.autocrlf input; git add .; git status -s",
		act: "printf 'one\\r\\n2\\r\\nthree\\r\\n' > a.txt", want: "update a.txt +1-1\n"},
	{name: "attributes with both line ends", lay: "printf '* text=auto eol=crlf\\n*.svg -diff\\r\\n' > .gitattributes; git add .; git commit -q -m a", act: "echo n > n",
		want: "add n +1-0\n# not in this diff (git would not restore its bytes, because it converts them): add n\n"},
	{name: "line ends that were stored", shares: true, lay: "printf 'a\\r\\nb\\r\\n' > c; git add c; git commit -q -m c; echo '* text=auto' > .gitattributes", act: "printf 'a\\r\\nB\\r\\n' > c", want: "update c +1-1\n"},
	{name: "mixed line ends", shares: true, lay: "echo '* text=auto' > .gitattributes; git add .; git commit -q -m a", act: "printf 'x\\r\\ny\\n' > mixed; echo z > z", want: "add mixed +2-0\nadd z +1-0\n"},
	{name: "line ends only, text=auto", shares: true, lay: "echo '* text=auto' > .gitattributes; echo b > b; git add .; git commit -q -m a", act: "printf 'one\\r\\ntwo\\r\\nthree\\r\\n' > a.txt; touch b",
		want: "update a.txt +3-3\n"},
	{name: "line ends only, core.autocrlf", lay: "git config core.autocrlf true; rm a.txt; git checkout -q a.txt; echo u > u", act: "printf 'one\\ntwo\\nthree\\n' > a.txt; printf 'u\\r\\n' > u",
		want: "update a.txt +3-3\nupdate u +1-1\n# not in this diff (git would not restore its bytes, because it converts them): update a.txt\n"},
	{name: "line ends only, core.autocrlf=input", lay: "git config core.autocrlf input", act: "printf 'one\\r\\ntwo\\nthree\\n' > a.txt",
		want: "update a.txt +1-1\n"},
	{name: "line ends only, of the same size", lay: "git config core.autocrlf input; printf 'a\\r\\nb\\n' > m; git add m; git commit -q -m m", act: "printf 'a\\nb\\r\\n' > m",
		want: "update m\n? m: git stores it in another form, so its content may be the same\n# not in this diff (git stores it in another form): update m\n"},
	{name: "line ends only, of files that commands made", shares: true, lay: "echo '* text eol=crlf' > .gitattributes; echo u > u", act: "printf 'u\\r\\n' > u; echo n > n",
		want: "add n +1-0\nupdate u +1-1\n# not in this diff (git would not restore its bytes, because it converts them): add n\n"},
	{name: "an encoding that git refuses", shares: true, lay: "echo '*.u16 text working-tree-encoding=UTF-16' > .gitattributes; echo k > k; git add .; git commit -q -m a; printf 'a\\0\\n\\0' > old.u16", act: "printf 'b\\0\\n\\0' > x.u16; printf 'c\\0\\n\\0' > old.u16; echo l >> k",
		want: "update k +1-0\nupdate old.u16\nadd x.u16\n? old.u16: git stores it in another form, so its content may be the same\n# not in this diff (git stores it in another form): update old.u16\n# not in this diff (git stores it in another form): add x.u16\n"},
	{name: "an encoding that git refuses later", shares: true, lay: "echo '*.u16 text working-tree-encoding=UTF-16' > .gitattributes; printf '\\377\\376a\\0\\n\\0' > x.u16; cp x.u16 y.u16; git add .; git commit -q -m a", act: "printf 'a\\0\\n\\0' > x.u16; echo x >> a.txt",
		want: "update a.txt +1-0\nupdate x.u16\n? x.u16: git stores it in another form, so its content may be the same\n# not in this diff (git stores it in another form): update x.u16\n"},
	{name: "an encoding that nobody knows", lay: "echo '*.x text working-tree-encoding=none-such' > .gitattributes; git add .; git commit -q -m a; echo a > a.x", act: "echo b > b.x; echo c > a.x", want: anything},
	{name: "encoding", shares: true, lay: "echo '*.u16 text working-tree-encoding=UTF-16LE' > .gitattributes; printf 'a\\0\\n\\0' > x.u16; git add .; git commit -q -m a", act: "printf 'a\\0b\\0\\n\\0' > x.u16", want: "update x.u16\n? x.u16: git stores it in another form, so its content may be the same\n# not in this diff (git stores it in another form): update x.u16\n"},
	{name: "a filter", shares: true, lay: "echo '*.big filter=lfs' > .gitattributes; git config filter.lfs.clean 'sha1sum'; git config filter.lfs.smudge cat; echo b > x.big; git add .; git commit -q -m a", act: "echo c > x.big; echo d > y.big; echo x >> a.txt",
		want: "update a.txt +1-0\nupdate x.big\nadd y.big +1-0\n? x.big: git stores it in another form, so its content may be the same\n# not in this diff (git stores it in another form): update x.big\n# not in this diff (git stores it in another form): add y.big\n"},
	{name: "a filtered file is touched", shares: true, lay: "echo '*.big filter=lfs' > .gitattributes; git config filter.lfs.clean 'sha1sum'; git config filter.lfs.smudge cat; echo b > x.big; touch -d 2001-01-01 x.big; git add .; git commit -q -m a", act: "touch x.big",
		want: "update x.big\n? x.big: git stores it in another form, so its content may be the same\n# not in this diff (git stores it in another form): update x.big\n"},

	// Other repositories and folders.
	{name: "submodule edit", lay: submodule, act: "echo m >> sub/l.txt; echo n > sub/n; echo x >> a.txt", want: "update a.txt +1-0\n? sub/: another repository\n"},
	{name: "submodule commit", lay: submodule, act: "echo m >> sub/l.txt; git -C sub commit -q -a -m m", want: "update sub/\n? sub/: another repository\n# not in this diff (another repository): update sub/\n"},
	{name: "submodule without a repository", lay: submodule + "git submodule --quiet deinit -f sub", act: "echo x > sub/x", want: "? sub/: it is a submodule without a repository\n"},
	{name: "submodule checked out", lay: submodule + "git submodule --quiet deinit -f sub", act: "git -c protocol.file.allow=always submodule --quiet update --init", want: "add sub/\n# not in this diff (another repository): add sub/\n"},
	{name: "nested repository edit", shares: true, lay: "git init -q n; echo x > n/x; mkdir n/d; printf '\\0' > n/d/b; git init -q n/m; echo y > n/m/y", act: "echo y > n/x; printf '\\0\\1' > n/d/b; echo z > n/m/y", want: "? n/: another repository\n"},
	{name: "nested repository made", shares: true, act: "git init -q n; echo x > n/x", want: "add n/\n# not in this diff (another repository): add n/\n"},
	{name: "nested repository removed", shares: true, lay: "git init -q n; echo x > n/x", act: "rm -rf n", want: "delete n/\n# not in this diff (another repository): delete n/\n"},
	{name: "many nested repositories", lay: "git init -q n10; echo x > n10/x; for i in $(seq 11 13); do cp -a n10 n$i; done", act: "echo y > n10/x; echo y > n13/x",
		want: "? n10/: another repository\n? n11/: another repository\n? n12/: another repository\n? n13/: another repository\n"},
	{name: "writable root", roots: true, act: "echo s >> ../root/r.txt; echo x >> a.txt", want: "update TOP/root/r.txt +1-0\nupdate a.txt +1-0\n# not in this diff (outside of the folder): update TOP/root/r.txt\n"},
	{name: "large writable root", roots: true, lay: "cd ../root; seq 60 | xargs touch", options: changes.Options{Files: 1000}, act: "echo s >> ../root/r.txt; echo x >> a.txt", want: "update a.txt +1-0\n? TOP/root/: too large for a snapshot: 61 files, and at most 50 may be read\n"},
	{name: "no repository", noGit: true, act: "echo x >> a.txt; printf '\\0' > b", want: "update a.txt +1-0\nadd b\n"},
	{name: "many files without a repository", noGit: true, lay: "seq 60 | xargs touch", options: changes.Options{Files: 1000}, act: "echo x >> a.txt", want: "? TOP/w: too large for a snapshot: 61 files, and at most 50 may be read\n"},
	{name: "too many untracked files", lay: "seq 60 | xargs touch", options: changes.Options{Files: 50}, act: "echo x >> a.txt", want: "? TOP/w: too large for a snapshot: 60 files, and at most 50 may be read\n"},

	// Repositories of other forms, and work in progress.
	{name: "no branch", lay: "git checkout -q --detach; echo x >> a.txt; git commit -q -a -m x", act: "git checkout -q HEAD~1; echo y >> a.txt", want: "update a.txt +1-1\n"},
	{name: "a linked worktree", lay: "mkdir ../m; mv .git a.txt ../m; git -C ../m worktree add -q ../tree; mv ../tree/.git ../tree/a.txt .", act: "echo x >> a.txt; git add .; git commit -q -m x; echo n > n", want: "update a.txt +1-0\nadd n +1-0\n"},
	{name: "cherry-pick", lay: "git checkout -q -b f; echo f > f; git add .; git commit -q -m f; git checkout -q main", act: "git cherry-pick f >/dev/null", want: "add f +1-0\n"},
	{name: "bisect", lay: "for i in 1 2 3 4; do echo $i >> a.txt; git commit -q -a -m $i; done; git bisect start HEAD HEAD~4 >/dev/null", act: "git bisect good >/dev/null", want: "update a.txt +1-0\n"},
	{name: "a shallow clone", lay: "echo x >> a.txt; git commit -q -a -m x; git clone -q --depth 1 file://$PWD ../c; rm -rf .git; mv ../c/.git .", act: "echo y >> a.txt; git commit -q -a -m y", want: "update a.txt +1-0\n"},
	{name: "a partial clone", lay: "echo b > b; git add .; git commit -q -m b; git config uploadpack.allowFilter true; git clone -q --no-checkout --filter=blob:none file://$PWD ../c; rm -rf .git; mv ../c/.git .; git reset -q", act: "echo x >> a.txt; echo n > n",
		want: "update a.txt\nadd n +1-0\n# not in this diff (git could not make the diff): update a.txt\n"},
	{name: "borrowed objects", lay: "git clone -q --shared . ../c; mv .git ../lent; rm -rf ../lent/index; mv ../c/.git .; echo ../../../lent/objects > .git/objects/info/alternates", act: "echo x >> a.txt", want: "update a.txt +1-0\n"},
	{name: "objects of SHA-256", lay: "rm -rf .git; git init -q -b main --object-format=sha256; : > e; git add .; git commit -q -m x", act: "echo x >> a.txt; : >> e", want: "update a.txt +1-0\n"},
	{name: "an index in two parts", lay: "echo b > b; git add .; git commit -q -m b; git update-index --split-index; echo c > c; git add c", act: "echo x >> a.txt; echo x >> c", want: "update a.txt +1-0\nupdate c +1-0\n"},
	{name: "an index of version 4", lay: "echo b > b; git add .; git update-index --index-version 4", act: "echo x >> a.txt; rm b", want: "update a.txt +1-0\ndelete b +0-1\n"},
	{name: "an index that knows new files", lay: "echo u > u; git update-index --force-untracked-cache; git status >/dev/null", act: "echo v > u; echo n > n", want: "add n +1-0\nupdate u +1-1\n"},
	{name: "a working tree elsewhere", lay: "mkdir ../other; git config core.worktree ../../other", act: "echo x >> a.txt; echo n > n", want: "update a.txt +1-0\nadd n +1-0\n"},
	{name: "a broken index", lay: "printf DIRC > .git/index", act: "echo x >> a.txt", want: anything},
	{name: "an object is missing", lay: "echo b > b; git add .; git commit -q -m b; rm -r .git/objects/??", act: "echo x >> a.txt; echo y > b",
		want: "update a.txt +1-0\nupdate b\n# not in this diff (git could not make the diff): update b\n"},
	{name: "a bare repository", noGit: true, lay: "git init -q --bare .", act: "echo x > description; echo n > n", want: "add description +1-0\nadd n +1-0\n"},
	{name: "the folder is removed", act: "cd ..; rm -rf w; mkdir w", want: "? TOP/w: its repository is gone\n"},
	{name: "a worktree below", lay: "git worktree add -q below", act: "echo x >> below/a.txt; echo x >> a.txt", want: "update a.txt +1-0\n? below/: another repository\n"},
	{name: "a worktree is made below", act: "git worktree add -q below", want: "add below/\n# not in this diff (another repository): add below/\n"},
	{name: "a link that leads out", lay: "mkdir ../out; echo o > ../out/o; ln -s ../out l; git add .; git commit -q -m l", act: "echo x >> l/o; ln -s ../out m", want: "add m +1-0\n"},
	{name: "an expanded keyword", lay: "echo '*.c ident' > .gitattributes; echo '$Id$' > a.c; git add .; git commit -q -m i; rm a.c; git checkout -q a.c", act: "echo '$Id: mine $' > a.c",
		want: "update a.c\n? a.c: git stores it in another form, so its content may be the same\n# not in this diff (git stores it in another form): update a.c\n"},
	{name: "a filter hides a change", lay: "echo '*.key filter=hide' > .gitattributes; git config filter.hide.clean 'echo hidden'; echo a > a.key; git add .; git commit -q -m h", act: "echo b > a.key",
		want: "update a.key\n? a.key: git stores it in another form, so its content may be the same\n# not in this diff (git stores it in another form): update a.key\n"},
	{name: "a submodule has another commit already", lay: submodule + "(cd sub; echo 1 >> l.txt; git commit -q -a -m 1)", act: "cd sub; echo 2 >> l.txt; git commit -q -a -m 2", want: "update sub/\n? sub/: another repository\n# not in this diff (another repository): update sub/\n"},

	// Limits, and the user at the same time.
	{name: "too slow before", options: changes.Options{Before: time.Nanosecond}, act: "echo x >> a.txt", want: "? TOP/w: reading the folder takes longer than 1ns\n"},
	{name: "too slow after", options: changes.Options{After: time.Nanosecond}, act: "echo x >> a.txt", want: "? TOP/w: reading the folder takes longer than 1ns\n"},
	{name: "tracking is off", options: changes.Options{Off: true}, act: "echo x >> a.txt", want: "? TOP/w: calls.changes is off\n"},
	{name: "the user edits", act: "echo x >> a.txt", user: "echo u > u; rm a.txt", want: "delete a.txt +0-3\nadd u +1-0\n"},
}
