package gateway

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// runtimeAPI is the Lambda Runtime API of one process.
func (e *environment) runtimeAPI() http.Handler {
	const prefix = "/2018-06-01/runtime/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+prefix+"invocation/next", e.next)
	mux.HandleFunc("POST "+prefix+"invocation/{id}/response", func(w http.ResponseWriter, r *http.Request) {
		e.answer(w, r, func(body []byte) answer { return answer{payload: body} })
	})
	mux.HandleFunc("POST "+prefix+"invocation/{id}/error", func(w http.ResponseWriter, r *http.Request) {
		e.answer(w, r, func(body []byte) answer { return answer{err: functionError(body)} })
	})
	mux.HandleFunc("POST "+prefix+"init/error", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what there is of it
		e.mu.Lock()
		e.failure = functionError(body)
		e.mu.Unlock()
		accepted(w)
	})
	return mux
}

// next waits until there is an event and hands it out. The function's time
// starts here.
func (e *environment) next(w http.ResponseWriter, r *http.Request) {
	select {
	case inv := <-e.events:
		e.mu.Lock()
		e.current = inv
		e.mu.Unlock()
		now := time.Now()
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(now.Add(e.timeout()).UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:"+region+":"+account+":function:"+e.function)
		h.Set("Lambda-Runtime-Trace-Id", traceRoot(now)+";Sampled=0")
		close(inv.taken)
		_, _ = w.Write(inv.event) // if the process has gone, its end is the answer
	case <-r.Context().Done():
	}
}

// answer ends the invoke that the request names. The process is free before the
// caller hears, so that a caller's next invoke finds it.
func (e *environment) answer(w http.ResponseWriter, r *http.Request, read func(body []byte) answer) {
	body, err := io.ReadAll(r.Body)
	inv := e.settle(r.PathValue("id"))
	if err != nil || inv == nil {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"errorType":"InvalidRequestID","errorMessage":"Invalid request ID"}`)
		return
	}
	e.lambda.release(e)
	inv.answered <- read(body)
	accepted(w)
}

func accepted(w http.ResponseWriter) {
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

func functionError(body []byte) *FunctionError {
	var e FunctionError
	if json.Unmarshal(body, &e) != nil || e.Type == "" {
		e = FunctionError{"Runtime.Unknown", string(body)}
	}
	return &e
}

// invokeID returns a UUID, as request ids of Lambda are.
func invokeID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
