package apigw_test

import (
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/pawl-lock/pawl/pkg/apigw"
)

func ExampleHandler() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /whoami", func(w http.ResponseWriter, r *http.Request) {
		req, _ := apigw.FromContext(r.Context())
		caller := req.Authorizer.IAM() // the routes of this API ask IAM
		if caller == "" {
			http.Error(w, "who calls?", http.StatusForbidden)
			return
		}
		fmt.Fprintln(w, caller)
	})
	lambda.Start(apigw.Handler(mux))
}
