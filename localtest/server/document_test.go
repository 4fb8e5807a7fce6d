package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// walkThrough runs the commands of a section as they stand there, in one shell,
// and compares what they print with what the section says they print. A command
// that starts a server is not run.
func walkThrough(t *testing.T, address, file, heading string, steps int) {
	t.Helper()
	readme, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "=== end of step ==="
	var script strings.Builder
	var want []string
	for _, block := range blocks(section(t, string(readme), heading)) {
		switch block.language {
		case "sh":
			if strings.HasPrefix(block.text, "go run ") || strings.HasPrefix(block.text, "python3 ") {
				continue
			}
			script.WriteString(strings.ReplaceAll(block.text, "http://127.0.0.1:8080", address) + "\necho; echo '" + mark + "'\n")
			want = append(want, "")
		case "http", "json":
			want[len(want)-1] = block.text
		}
	}
	if len(want) < steps {
		t.Fatalf("found only %d steps", len(want))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", script.String())
	shell.Dir = t.TempDir()
	shell.Stderr = os.Stderr
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	printed := strings.Split(string(out), mark+"\n")
	last := int64(0)
	for i, w := range want {
		got := strings.TrimSpace(strings.ReplaceAll(printed[i], "\r", ""))
		if !shows(w, got) {
			t.Errorf("step %d printed\n%s\nand %s says\n%s", i+1, got, file, w)
		}
		if token := regexp.MustCompile(`"token":(\d+),"lease_id"`).FindStringSubmatch(got); token != nil {
			n, _ := strconv.ParseInt(token[1], 10, 64)
			if n < last {
				t.Errorf("step %d has the token %d, after %d", i+1, n, last)
			}
			last = n
		}
	}
}

// remaining is a time that goes down from the moment of the grant on.
var remaining = regexp.MustCompile(`"remaining_ms":(\d+)`)

// slow is how much time may pass between a grant and the answer that tells of it.
const slow = 2000

// shows reports whether a document shows what was printed. Two things may differ:
// "…" stands for anything, and a line of it for any lines or none; and a
// remaining_ms may be less than the number in the document, by what is slow.
func shows(document, printed string) bool {
	pattern := remaining.ReplaceAllString(regexp.QuoteMeta(document), `"remaining_ms":(\d+)`)
	pattern = strings.ReplaceAll(pattern, "\n…\n", "\n(?:.*\n)?")
	pattern = "(?s)^" + strings.ReplaceAll(pattern, "…", ".*") + "$"
	times := regexp.MustCompile(pattern).FindStringSubmatch(printed)
	if times == nil {
		return false
	}
	for i, shown := range remaining.FindAllStringSubmatch(document, -1) {
		most, _ := strconv.Atoi(shown[1]) // digits
		left, err := strconv.Atoi(times[i+1])
		if err != nil || left > most || left < most-slow {
			return false
		}
	}
	return true
}

func TestADocumentShowsWhatIsPrintedButForWhatTimeChanges(t *testing.T) {
	const lease = `{"token":…,"remaining_ms":30000,"free":false}`
	for printed, want := range map[string]bool{
		`{"token":17,"remaining_ms":30000,"free":false}`:  true,
		`{"token":17,"remaining_ms":29999,"free":false}`:  true,
		`{"token":17,"remaining_ms":28000,"free":false}`:  true,
		`{"token":17,"remaining_ms":27999,"free":false}`:  false,
		`{"token":17,"remaining_ms":30001,"free":false}`:  false,
		`{"token":17,"remaining_ms":-1,"free":false}`:     false,
		`{"token":17,"remaining_ms":"soon","free":false}`: false,
		`{"token":17,"remaining_ms":30000,"free":true}`:   false,
		`{"token":17,"free":false}`:                       false,
	} {
		if shows(lease, printed) != want {
			t.Errorf("%s: got %v of %s", lease, !want, printed)
		}
	}
	for printed, want := range map[string]bool{"a\nb": true, "a\nx\ny\nb": true, "a\nx": false} {
		if shows("a\n…\nb", printed) != want {
			t.Errorf("any lines: got %v of %q", !want, printed)
		}
	}
}

// section returns the text below a heading, to the next of its level.
func section(t *testing.T, text, heading string) string {
	_, after, found := strings.Cut(text, "\n"+heading+"\n")
	if !found {
		t.Fatalf("there is no %q", heading)
	}
	body, _, _ := strings.Cut(after, "\n## ")
	return body
}

type block struct{ language, text string }

var fenced = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)\n```$")

func blocks(text string) (found []block) {
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		found = append(found, block{m[1], m[2]})
	}
	return found
}
