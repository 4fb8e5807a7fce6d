package infra

import (
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2authorizers"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2integrations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscertificatemanager"
	"github.com/aws/jsii-runtime-go"

	"github.com/pawl-lock/pawl/pkg/lease/httplease"
)

// addAPI makes the HTTP API with one route for each call of the spec. There is
// no route for anything else: the gateway answers 404 before a function runs.
func (s *LockService) addAPI(props *LockServiceProps) {
	s.API = awsapigatewayv2.NewHttpApi(s.Construct, jsii.String("Api"), &awsapigatewayv2.HttpApiProps{
		Description:               jsii.String("Pawl, a lock service with fencing tokens"),
		CreateDefaultStage:        jsii.Bool(false),
		DefaultAuthorizer:         props.authorizer(), // also for routes that someone adds
		DisableExecuteApiEndpoint: jsii.Bool(props.Domain != nil),
	})
	acquire := awsapigatewayv2integrations.NewHttpLambdaIntegration(jsii.String("Acquire"), s.Acquire, nil)
	rest := awsapigatewayv2integrations.NewHttpLambdaIntegration(jsii.String("Rest"), s.Rest, nil)
	all, public := httplease.Routes()
	var routes []awsapigatewayv2.HttpRoute
	for _, key := range all {
		method, path, _ := strings.Cut(key, " ")
		o := &awsapigatewayv2.AddRoutesOptions{
			Path:        jsii.String(path),
			Methods:     &[]awsapigatewayv2.HttpMethod{awsapigatewayv2.HttpMethod(method)},
			Integration: rest,
		}
		if behind(key) == "Acquire" {
			o.Integration = acquire
		}
		if slices.Contains(public, key) {
			o.Authorizer = awsapigatewayv2.NewHttpNoneAuthorizer()
		}
		routes = append(routes, *s.API.AddRoutes(o)...)
	}
	s.addStage(props, routes)
}

func (p *LockServiceProps) authorizer() awsapigatewayv2.IHttpRouteAuthorizer {
	if p.JWT == nil {
		return awsapigatewayv2authorizers.NewHttpIamAuthorizer()
	}
	return awsapigatewayv2authorizers.NewHttpJwtAuthorizer(jsii.String("Jwt"), jsii.String(p.JWT.Issuer),
		&awsapigatewayv2authorizers.HttpJwtAuthorizerProps{JwtAudience: jsii.Strings(p.JWT.Audience...)})
}

func (s *LockService) addStage(props *LockServiceProps, routes []awsapigatewayv2.HttpRoute) {
	throttles := props.throttles()
	p := &awsapigatewayv2.HttpStageProps{
		HttpApi:    s.API,
		StageName:  jsii.String(props.stage()),
		AutoDeploy: jsii.Bool(true),
		Throttle: &awsapigatewayv2.ThrottleSettings{
			RateLimit: jsii.Number(1), BurstLimit: jsii.Number(1), // of routes that somebody adds
		},
	}
	base := s.API.ApiEndpoint
	if d := props.Domain; d != nil {
		name := awsapigatewayv2.NewDomainName(s.Construct, jsii.String("Domain"), &awsapigatewayv2.DomainNameProps{
			DomainName:  jsii.String(d.Name),
			Certificate: awscertificatemanager.Certificate_FromCertificateArn(s.Construct, jsii.String("Certificate"), jsii.String(d.CertificateARN)),
		})
		p.DomainMapping = &awsapigatewayv2.DomainMappingOptions{DomainName: name}
		s.DomainTarget = name.RegionalDomainName()
		base = func() *string { return jsii.String("https://" + d.Name) }
	}
	stage := awsapigatewayv2.NewHttpStage(s.Construct, jsii.String("Stage"), p)
	s.URL = base()
	if props.stage() != "$default" && props.Domain == nil {
		s.URL = jsii.String(*s.URL + "/" + props.stage())
	}

	// The CDK has no properties for what follows.
	cfn := stage.Node().DefaultChild().(awsapigatewayv2.CfnStage)
	settings := make(map[string]any)
	for key, t := range throttles {
		settings[key] = map[string]any{"ThrottlingRateLimit": t.Rate, "ThrottlingBurstLimit": t.Burst}
	}
	cfn.SetRouteSettings(settings)
	for _, r := range routes {
		// A stage that has settings for a route that is not there yet is refused.
		cfn.AddResourceDependency(r.Node().DefaultChild().(awscdk.CfnResource), nil)
	}
	logs := newLogGroup(s.Construct, "AccessLog", accessLogName(s.Construct), props.LogRetentionDays)
	s.countTurnedAway(logs)
	cfn.SetAccessLogSettings(&awsapigatewayv2.CfnStage_AccessLogSettingsProperty{
		DestinationArn: logs.LogGroupArn(),
		Format:         jsii.String(accessLogFormat(props.JWT != nil)),
	})
}
